import Bytes

/// Histories without gaps, as other databases take them.
///
/// Pruning leaves a gap below a branch when a revision that a peer has is kept ("Pruning" in docs/documents.md). Couchbase Lite
/// refuses a history with a gap between generations, unless as many revisions as its trees keep come before the gap. The
/// `_revisions` of CouchDB can't say one. So gaps are filled with IDs that no revision has: `G-faded000` and 16 hexadecimal digits.
package enum RevisionHistory {
  /// How long a history becomes that is filled for the CouchDB family: as many revisions as CouchDB keeps.
  package static let longestDense = 1_000

  /// Fills the gaps of a history, which begins with the revision itself. What lies behind a gap that would make more than
  /// `maximum` revisions is left out. Generations descend by 1 then.
  package static func dense(_ history: [RevisionID], maximum: Int = longestDense) -> [RevisionID] {
    guard var last = history.first else { return [] }
    var dense = [last]
    for revision in history.dropFirst() {
      guard revision.generation < last.generation else { break }
      let steps = last.generation - revision.generation
      guard steps == 1 || steps <= UInt64(max(0, maximum - dense.count)) else { break }
      for generation in (revision.generation + 1..<last.generation).reversed() {
        dense.append(
          RevisionID(generation: generation, suffix: fadedSuffix(generation, below: last.description)))
      }
      dense.append(revision)
      last = revision
    }
    return dense
  }

  /// Fills the gaps of a history, which begins with the revision itself, up to `maximum` ancestors. Its last one stays the last.
  package static func filled(_ history: [String], maximum: Int) -> [String] {
    let generations = history.map { RevisionID($0)?.generation ?? 0 }
    guard let first = history.first, let last = history.last, !generations.contains(0),
      zip(generations, generations.dropFirst()).contains(where: { $0 != $1 + 1 })
    else { return history }
    var filled = [first]
    for (index, revision) in history.enumerated().dropFirst() {
      var generation = generations[index - 1]
      while generation > generations[index] + 1, filled.count < maximum {
        generation -= 1
        filled.append("\(generation)-" + fadedSuffix(generation, below: history[index - 1]))
      }
      if filled.count <= maximum { filled.append(revision) }
    }
    if let end = filled.last, !end.hasSameBytes(as: last) { filled[filled.count - 1] = last }
    return filled
  }

  /// The same ID wherever the same gap is filled.
  private static func fadedSuffix(_ generation: UInt64, below revision: String) -> String {
    // FNV-1a.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in "\(generation) \(revision)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return "faded000" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
