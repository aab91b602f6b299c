/// Finds text in which some characters may be any character.
///
/// The algorithm is Shift-And, by Baeza-Yates and Gonnet. There is one bit for each prefix of the pattern. It
/// is set when the text read so far ends with that prefix. Each character of the text shifts all bits at
/// once, 64 in a word. So the time is the length of the text times the number of words of the pattern.
final class WildcardSearch: Sendable {
  /// The number of characters of the pattern.
  private let count: Int
  private let words: Int
  /// One mask for each different character, after a first mask for all characters that don't occur. Its bits
  /// are the positions that the character fits.
  private let masks: [UInt64]
  /// The number of each character's mask. ASCII characters have a table.
  private let ascii: [Int32]
  private let others: [UInt32: Int32]
  /// The maximum size of the masks, in words: 4 MiB.
  private static let mostWords = 1 << 19

  /// The pattern is UTF-8, in which `LikePart.anyOne` is any character. Nil when it is empty, or its masks
  /// would be too large.
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

  /// The end offset of the first occurrence between two offsets of a text. Nil when there is none, or the
  /// query has to stop.
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
          // The empty prefix fits everywhere.
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
