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
      let gap = gap(between: last, and: revision)
      guard gap.isEmpty || gap.count < maximum - dense.count else { break }
      dense += gap
      dense.append(revision)
      last = revision
    }
    return dense
  }

  /// Fills the gaps of a history, which begins with the revision itself, up to `maximum` ancestors. Its last one stays the last.
  package static func filled(_ history: [String], maximum: Int) -> [String] {
    let revisions = history.compactMap { RevisionID($0) }
    let gaps = zip(revisions, revisions.dropFirst()).map { gap(between: $0, and: $1) }
    guard let first = history.first, let last = history.last, revisions.count == history.count,
      gaps.contains(where: { !$0.isEmpty })
    else { return history }
    var filled = [first]
    for (gap, revision) in zip(gaps, history.dropFirst()) where filled.count <= maximum {
      filled += gap.prefix(max(0, maximum - filled.count)).map(\.description)
      filled.append(revision)
    }
    filled[filled.count - 1] = last
    return filled
  }

  /// What fills the gap between a revision and the next one of its history. The same IDs wherever the same gap is filled.
  private static func gap(between revision: RevisionID, and next: RevisionID)
    -> some RandomAccessCollection<RevisionID>
  {
    let first = next.generation + 1
    return (first..<max(first, revision.generation)).reversed().lazy.map { generation in
      RevisionID(
        generation: generation, suffix: fadedSuffix(generation, below: revision.description))
    }
  }

  private static func fadedSuffix(_ generation: UInt64, below revision: String) -> String {
    // FNV-1a.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in "\(generation) \(revision)".utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let digits = String(hash, radix: 16)
    return "faded000" + String(repeating: "0", count: 16 - digits.utf8.count) + digits
  }
}
