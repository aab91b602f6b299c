import Documents

/// Sequences that several revisions of a source have. A killed writer can leave two documents with one sequence,
/// and all revisions that one save added have that of the save.
///
/// A store finds changes, and bodies of revisions that aren't current, by their sequences. Each of these needs one
/// of its own. A revision that can't have its own sequence gets the next one after the last of the source.
extension UpgradeCopy {
  /// Gives revisions of the reader's document new sequences where needed.
  func settleSequences(_ target: DocumentImport) throws {
    let rows = reader.revisions.rows
    var changed: [(row: Int, sequence: Int)] = []
    // Rows with one sequence are beside each other, the ones with bodies first.
    var last: Int?
    for (index, row) in rows.enumerated() {
      let needsOwn = row.hasBody || row.isCurrent
      // The first row has the highest sequence, which is that of the document.
      guard index == 0 || needsOwn, row.generation > 0, let sequence = UInt64(exactly: row.sequence) else {
        continue
      }
      let isTaken =
        try index == 0 && target.isChange(sequence)
        || needsOwn && (row.sequence == last || rows.count > 1 && target.isOfBody(sequence))
      last = needsOwn ? row.sequence : last
      if isTaken { changed.append((index, 0)) }
    }
    guard !changed.isEmpty else { return }
    for index in changed.indices.reversed() { changed[index].sequence = try newSequence(target) }
    try upgrade.noteRenumbered(reader.number, changed)
    let before = changed.map { rows[$0.row].sequence }
    reader.renumber(changed)
    // It counts once the document is carried over.
    renumbering = UpgradeIssue(
      .sharedSequence, documentID: reader.documentName,
      "other revisions have its sequence \(before[0]) too; it gets \(changed[0].sequence)")
  }

  /// Returns the next sequence that isn't stored. A revision tree can say any, even one above the last.
  private func newSequence(_ target: DocumentImport) throws -> Int {
    while true {
      let sequence = try upgrade.newSequence()
      if try !target.isChange(UInt64(sequence)), try !target.isOfBody(UInt64(sequence)) { return sequence }
    }
  }
}
