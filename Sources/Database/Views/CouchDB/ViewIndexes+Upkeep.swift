import Bytes
import Documents
import Storage

/// What CouchDB tells of the views of a design document.
package struct DesignInformation: Sendable, Hashable {
  /// The language of the functions.
  package var language = "javascript"
  /// A digest of the functions.
  package var signature = ""
  /// The sequence up to which the rows are, and that of purges.
  package var sequence: UInt64 = 0
  package var purge: UInt64 = 0
  /// How many changes aren't in the rows.
  package var pendingChanges = 0
  /// The versions of ICU's collator that ordered the rows, and of the one that orders the next.
  package private(set) var collators: [String] = []

  /// Adds a version without zeros at its end, as ICU writes it.
  fileprivate mutating func add(collator version: String) {
    // The version of the rules follows that of the data.
    var parts = version.prefix { $0 != " " }.split(separator: ".")
    while parts.count > 2, parts.last == "0" { parts.removeLast() }
    let short = parts.joined(separator: ".")
    if !short.isEmpty, !collators.contains(short) { collators.append(short) }
  }
}

extension ViewIndexes {
  /// What there is of the views of a design document; nil if there is no such document. One that can't be compiled, such as an index of
  /// CouchDB's `_find`, has none.
  package func information(ofDesign name: String) throws -> DesignInformation? {
    let found: DesignDocument?
    do { found = try design(name) } catch let error as ViewError where error.code == .invalidDesign {
      return try informationWithoutViews(name)
    }
    guard let design = found else { return nil }
    var information = DesignInformation()
    information.language = design.language
    information.signature = try design.signature
    try store.read { snapshot in
      var sequences: [UInt64] = []
      for member in design.members {
        guard let record = try ViewRecord.read(member.name, in: snapshot.storage), record.stage == .whole,
          record.mapVersion == member.mapVersion
        else {
          sequences.append(0)
          information.add(collator: try ViewKeyEncoder(member.collation).collatorVersion)
          continue
        }
        sequences.append(record.lastSequence)
        information.purge = max(information.purge, record.purge)
        information.add(collator: String(decoding: record.collator, as: UTF8.self))
      }
      information.sequence = sequences.min() ?? 0
      let last = try snapshot.lastSequence
      let behind = last > information.sequence ? Int(clamping: last - information.sequence) : 0
      information.pendingChanges = min(behind, try snapshot.documentCount + snapshot.tombstoneCount)
    }
    return information
  }

  private func informationWithoutViews(_ name: String) throws -> DesignInformation? {
    guard let (_, body) = try designBody(name) else { return nil }
    var information = DesignInformation()
    if let language = body["language"]?.string { information.language = language }
    information.signature = try DesignDocument.signature(of: body["views"] ?? .null)
    information.sequence = try store.read { try $0.lastSequence }
    return information
  }

  /// Removes the rows of views that belong to no design document any more, and that this process has no functions for. Returns
  /// the names of these views.
  @discardableResult
  package func removeUnused() throws -> [String] {
    let names: [String] = try store.read { snapshot in try unused(in: snapshot) { _ in true } }
    try remove(names)
    return names
  }

  /// Removes the rows of views that a design document doesn't have any more, before others of it are brought up to date. When some
  /// of it are to be built, those of other design documents, too.
  func removeVanished(_ design: DesignDocument) throws {
    guard temporaryDesigns(design.name) == nil else { return }
    let prefix = ViewName.prefix(ofDesign: design.name)
    let members = Set(design.members.map { ByteString($0.name) })
    let vanished = try store.read { snapshot -> [String] in
      let transaction = try snapshot.storage
      let isBuilding = try design.members.contains { member in
        try ViewRecord.read(member.name, in: transaction).map { $0.mapVersion != member.mapVersion } ?? true
      }
      if isBuilding { return try unused(in: snapshot) { $0.isOfDesign } }
      var names: [String] = []
      try ViewRecord.forEach(in: transaction, prefix: prefix) { name, record in
        guard !members.contains(ByteString(name)), known(name)?.definition == nil,
          case .success(let record) = record, record.isOfDesign
        else { return }
        names.append(name)
      }
      return names
    }
    do { try remove(vanished) } catch let error as StorageError where error.code == .readOnly {}
  }

  private func remove(_ names: [String]) throws {
    guard !names.isEmpty else { return }
    try store.writingDerived { transaction in
      for name in names { _ = try ViewRecord.delete(name, in: transaction) }
    }
  }

  /// The views that belong to no design document, and that this process has no functions for.
  private func unused(in snapshot: DocumentSnapshot, _ isChosen: (ViewRecord) -> Bool) throws -> [String] {
    var names: [String] = []
    var used: Set<ByteString> = []
    try ViewRecord.forEach(in: snapshot.storage) { name, record in
      // What can't be read isn't kept for a view that is gone.
      let isCandidate = (try? record.get()).map(isChosen) ?? true
      if isCandidate, name.utf8.contains(UInt8(ascii: "/")) { names.append(name) }
    }
    guard !names.isEmpty else { return [] }
    try snapshot.forEachDesign { design, body in
      for (view, _) in body["views"]?.object ?? [:] { used.insert(ByteString(ViewName.joined(design, view))) }
    }
    return names.filter { name in
      !used.contains(ByteString(name)) && known(name)?.definition == nil && !isTemporary(name)
    }
  }
}
