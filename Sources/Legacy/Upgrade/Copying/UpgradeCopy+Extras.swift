import Documents

/// What isn't a document: expirations, local documents, and values of the database.
extension UpgradeCopy {
  func carryExpiration(_ target: DocumentImport) throws {
    if reader.hasInvalidExpiration {
      upgrade.report.expirations.add(\.skipped)
      return try upgrade.note(
        UpgradeIssue(
          .expiration, documentID: reader.documentName, "its expiration time can't be read"))
    }
    guard let seconds = reader.expiration else { return }
    let isWanted = upgrade.options.carry == .full
    upgrade.report.expirations.add(isWanted ? \.carried : \.unwanted)
    guard isWanted else { return }
    _ = try target.setExpiration(reader.documentID, milliseconds: Int64(seconds) * 1_000)
  }

  func carryExtras() throws {
    let source = upgrade.source
    upgrade.report.views.add(\.unwanted, try source.viewCount())
    upgrade.report.checkpoints.add(\.unwanted, try source.checkpointCount())
    guard upgrade.options.carry == .full else {
      return try source.forEachLocalDocument(
        { _, _, _ in upgrade.report.localDocuments.add(\.unwanted) },
        skipped: { _, _ in upgrade.report.localDocuments.add(\.unwanted) })
    }
    for issue in try source.extraIssues() {
      if issue.kind == .expiration { upgrade.report.expirations.add(\.skipped) }
      try upgrade.note(issue)
    }
    if let text = try source.info("max_revs"), let depth = Int(text), depth > 0 {
      try store.setMaximumTreeDepth(depth)
    }
    try store.importing { target in
      try source.forEachLocalDocument(
        { id, generation, json in try carryLocal(id, generation, json, target) }, skipped: skipLocal)
      target.raiseLastSequence(to: UInt64(try upgrade.lastSequence()))
      try target.setIdentity(
        publicUUID: try source.info("publicUUID").flatMap(SourceText.uuid),
        privateUUID: try source.info("privateUUID").flatMap(SourceText.uuid))
    }
  }

  private func carryLocal(
    _ id: String, _ generation: UInt64, _ json: UnsafeRawBufferPointer, _ target: DocumentImport
  ) throws {
    let name = SourceText.localName(id)
    let reason: String
    do {
      if try target.insertLocalDocument(name, generation: generation, json: json) {
        return upgrade.report.localDocuments.add(\.carried)
      }
      // The table forbids duplicate IDs, but a damaged table can have them.
      reason = "an earlier one has the same ID"
    } catch let error as DocumentError where [.invalidBody, .invalidDocumentID].contains(error.code) {
      reason = "it can't be stored: \(error.message)"
    }
    try skipLocal(id, reason)
  }

  private func skipLocal(_ id: String?, _ reason: String) throws {
    upgrade.report.localDocuments.add(\.skipped)
    try upgrade.note(UpgradeIssue(.localDocument, documentID: id, reason))
  }
}
