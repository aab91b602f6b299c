import Fleece

/// The decision what to carry over of a reader's current document. The copy and the comparison make the same
/// decision.
struct SourcePlan {
  /// Returns why the body of a leaf can't be read, or nil if it can.
  typealias Readability = (_ row: Int) throws -> String?

  /// The issues of the document, in the order in which they were found.
  private(set) var issues: [UpgradeIssue] = []
  /// The number of revisions that are carried over.
  private(set) var revisions = 0
  /// The number of live leaves that are carried over.
  private(set) var liveLeaves = 0
  /// The number of leaves that are carried over.
  private(set) var leaves = 0
  /// The number of live leaves that a full upgrade carries over. `sourceBodies` is the number of bodies in
  /// the source.
  private(set) var sourceLiveLeaves = 0
  private(set) var sourceBodies = 0
  /// The number of revisions that the options don't ask for.
  private(set) var unwanted = 0

  /// The number of revisions of the winner's branch that `winners` carries over. The official upgrade keeps
  /// as many.
  static let winnersDepth = 20

  /// Decides what to carry over. `whyUnreadable` is called only if there are several leaves. Code that copies
  /// a single leaf finds an unreadable body itself and calls `refuse`.
  mutating func decide(
    _ reader: any SourceReader, _ carry: UpgradeOptions.Carry, whyUnreadable: Readability
  ) throws {
    issues.removeAll(keepingCapacity: true)
    unwanted = 0
    choose(reader)
    if leaves > 1 {
      var refused: [UpgradeIssue] = []
      for index in reader.revisions.rows.indices where reader.revisions.rows[index].isLeaf {
        guard let reason = try whyUnreadable(index) else { continue }
        reader.revisions.rows[index].isRefused = true
        refused.append(Self.unreadable(reader, index, reason))
      }
      if !refused.isEmpty {
        issues.removeAll()
        choose(reader)
        issues += refused
      }
    }
    sourceLiveLeaves = liveLeaves
    sourceBodies = reader.revisions.rows.count { $0.hasBody }
    if carry == .winners, revisions > 0 { keepWinner(reader) }
    for (index, row) in reader.revisions.rows.enumerated() where row.isLeaf && !row.hasBody && !row.isDeleted
    {
      issues.append(
        UpgradeIssue(
          .emptyBody, documentID: reader.documentName, revisionID: reader.revisions.id(index),
          "its body is no longer in the database; it gets an empty one"))
    }
  }

  /// Adds the issue of a leaf whose body can't be read.
  mutating func refuse(_ reader: any SourceReader, _ row: Int, _ reason: String) {
    issues.append(Self.unreadable(reader, row, reason))
  }

  static func unreadable(_ reader: any SourceReader, _ row: Int, _ reason: String) -> UpgradeIssue {
    UpgradeIssue(
      .unreadableBody, documentID: reader.documentName, revisionID: reader.revisions.id(row),
      "its body can't be read (\(reason)); the revision is left out")
  }

  private mutating func choose(_ reader: any SourceReader) {
    var found: [(row: Int, kind: UpgradeIssue.Kind, message: String)] = []
    // The value is moved out of the reader during the change, so that it isn't copied.
    var revisions = reader.revisions
    reader.revisions = SourceRevisions()
    revisions.choose { found.append(($0, $1, $2)) }
    for (row, kind, message) in found {
      issues.append(
        UpgradeIssue(
          kind, documentID: reader.documentName, revisionID: String(revisions.id(row).prefix(300)), message))
    }
    reader.revisions = revisions
    count(reader)
  }

  private mutating func count(_ reader: any SourceReader) {
    (revisions, liveLeaves, leaves) = (0, 0, 0)
    for row in reader.revisions.rows where row.isCarried {
      revisions += 1
      guard row.isLeaf else { continue }
      leaves += 1
      if !row.isDeleted { liveLeaves += 1 }
    }
  }

  /// Keeps only the branch of the winner, by the rule of 1.x.
  private mutating func keepWinner(_ reader: any SourceReader) {
    guard let winner = Self.winner(reader.revisions) else { return }
    let before = revisions
    var rows = reader.revisions.rows
    let isCarried = rows.map(\.isCarried)
    for index in rows.indices {
      rows[index].isCarried = false
      rows[index].isLeaf = false
      rows[index].number = -1
    }
    rows[winner].isLeaf = true
    var index = winner
    for number in 0..<Self.winnersDepth where index >= 0 && isCarried[index] {
      rows[index].isCarried = true
      rows[index].number = number
      // Only the IDs of ancestors are kept.
      if index != winner { rows[index].hasBody = false }
      index = rows[index].parent
    }
    reader.revisions.rows = rows
    count(reader)
    unwanted = before - revisions
    renumber(reader)
  }

  /// Numbers the revisions in the order of the rows.
  private func renumber(_ reader: any SourceReader) {
    var number = 0
    for index in reader.revisions.rows.indices where reader.revisions.rows[index].isCarried {
      reader.revisions.rows[index].number = number
      number += 1
    }
  }

  /// Returns the row of the winning leaf: a live leaf before a deleted one, then the higher revision ID.
  static func winner(_ revisions: SourceRevisions) -> Int? {
    var best: Int?
    for index in revisions.rows.indices where revisions.rows[index].isLeaf {
      guard let found = best else {
        best = index
        continue
      }
      let (old, new) = (revisions.rows[found], revisions.rows[index])
      let isBetter: Bool
      if old.isDeleted != new.isDeleted {
        isBetter = old.isDeleted
      } else if old.generation != new.generation {
        isBetter = new.generation > old.generation
      } else {
        isBetter = revisions.withID(found) { old in
          revisions.withID(index) { new in old.lexicographicallyPrecedes(new) }
        }
      }
      if isBetter { best = index }
    }
    return best
  }
}
