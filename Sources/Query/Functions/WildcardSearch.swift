/// Finds text in which some characters may be any.
///
/// A bit stands for each beginning of what is looked for: whether the text up to here ends with it (the algorithm is
/// known as Shift-And, or Baeza-Yates and Gonnet's). For each character of the text all bits move on at once, 64 in a
/// word, so that the time is that of the text times the pattern's words.
final class WildcardSearch: Sendable {
  /// How many characters are looked for.
  private let count: Int
  private let words: Int
  /// For each different character, and in front for those that don't occur: the bits of the places that it fits.
  private let masks: [UInt64]
  /// Which of the masks a character has; of ASCII in a table.
  private let ascii: [Int32]
  private let others: [UInt32: Int32]
  /// The largest tables, in words: 4 MiB.
  private static let mostWords = 1 << 19

  /// What is looked for is UTF-8, in which `LikePart.anyOne` is any character. Nil when its tables would be too large.
  init?(_ pattern: TextSlice) {
    var scalars: [UInt32?] = []
    var offset = 0
    while offset < pattern.count {
      if pattern.start[offset] == LikePart.anyOne {
        scalars.append(nil)
        offset += 1
      } else {
        let (scalar, length) = pattern.scalarOrReplacement(at: offset)
        scalars.append(scalar)
        offset += length
      }
    }
    count = scalars.count
    let words = (scalars.count + 63) / 64
    self.words = words
    var rows: [UInt32: Int32] = [:]
    for case let scalar? in scalars where rows[scalar] == nil { rows[scalar] = Int32(rows.count + 1) }
    guard !scalars.isEmpty, (rows.count + 1) * words <= Self.mostWords else { return nil }
    var masks = [UInt64](repeating: 0, count: (rows.count + 1) * words)
    for (place, scalar) in scalars.enumerated() {
      let bit: UInt64 = 1 << UInt64(place & 63)
      if let scalar {
        masks[Int(rows[scalar] ?? 0) * words + place / 64] |= bit
      } else {
        for row in 0...rows.count { masks[row * words + place / 64] |= bit }
      }
    }
    self.masks = masks
    var ascii = [Int32](repeating: 0, count: 128)
    for (scalar, row) in rows where scalar < 128 { ascii[Int(scalar)] = row }
    self.ascii = ascii
    others = rows.filter { $0.key >= 128 }
  }

  /// Where the first occurrence within two offsets of a text ends; nil when there is none, or the query is to end.
  func find(in text: TextSlice, _ from: Int, _ to: Int, _ context: EvaluationContext) -> Int? {
    withUnsafeTemporaryAllocation(of: UInt64.self, capacity: words) { state in
      state.initialize(repeating: 0)
      return masks.withUnsafeBufferPointer { masks in
        let last = words - 1
        let final: UInt64 = 1 << UInt64((count - 1) & 63)
        var offset = from
        var steps = 0
        while offset < to {
          let (scalar, length) = text.scalarOrReplacement(at: offset)
          offset += length
          let row = Int(scalar < 128 ? ascii[Int(scalar)] : others[scalar] ?? 0) * words
          // The empty beginning fits everywhere.
          var carry: UInt64 = 1
          for word in 0...last {
            let bits = state[word]
            state[word] = (bits << 1 | carry) & masks[row + word]
            carry = bits >> 63
          }
          if state[last] & final != 0 { return offset <= to ? offset : nil }
          steps += words
          if steps > 1 << 16 {
            steps = 0
            guard context.goesOn else { return nil }
          }
        }
        return nil
      }
    }
  }
}
