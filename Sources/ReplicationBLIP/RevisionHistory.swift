import Bytes
import Documents

/// Histories as Couchbase Lite takes them.
///
/// It refuses one with a gap between generations, unless as many revisions as its trees keep come before the gap. Revisions
/// that were pruned leave such gaps. They are filled with IDs that no revision has: `G-faded000` and 16 hexadecimal digits.
enum RevisionHistory {
  /// Fills the gaps of a history, which begins with the revision itself, up to `maximum` ancestors. Its last one stays the last.
  static func filled(_ history: [String], maximum: Int) -> [String] {
    let generations = history.map { RevisionID($0)?.generation ?? 0 }
    guard let first = history.first, let last = history.last, !generations.contains(0),
      zip(generations, generations.dropFirst()).contains(where: { $0 != $1 + 1 })
    else { return history }
    var filled = [first]
    for (index, revision) in history.enumerated().dropFirst() {
      var generation = generations[index - 1]
      while generation > generations[index] + 1, filled.count < maximum {
        generation -= 1
        filled.append(faded(generation, below: history[index - 1]))
      }
      if filled.count <= maximum { filled.append(revision) }
    }
    if let end = filled.last, !end.hasSameBytes(as: last) { filled[filled.count - 1] = last }
    return filled
  }

  /// The same ID wherever the same gap is filled.
  private static func faded(_ generation: UInt64, below revision: String) -> String {
    // FNV-1a.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in "\(generation) \(revision)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return "\(generation)-faded000" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
