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
  /// The versions of ICU's collator that ordered the rows.
  package var collators: [String] = []
}

extension ViewIndexes {
  /// What there is of the views of a design document; nil if there is no such document. Throws a `ViewError` if it can't be
  /// compiled.
  package func information(ofDesign name: String) throws -> DesignInformation? {
    guard let design = try design(name) else { return nil }
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
          continue
        }
        sequences.append(record.lastSequence)
        information.purge = max(information.purge, record.purge)
        let collator = ViewIndexes.short(String(decoding: record.collator, as: UTF8.self))
        if !collator.isEmpty, !information.collators.contains(collator) {
          information.collators.append(collator)
        }
      }
      information.sequence = sequences.min() ?? 0
      let last = try snapshot.lastSequence
      let behind = last > information.sequence ? Int(clamping: last - information.sequence) : 0
      information.pendingChanges = min(behind, try snapshot.documentCount + snapshot.tombstoneCount)
    }
    return information
  }

  /// A version without zeros at its end, as ICU writes it.
  private static func short(_ version: String) -> String {
    var parts = version.split(separator: ".")
    while parts.count > 2, parts.last == "0" { parts.removeLast() }
    return parts.joined(separator: ".")
  }

  /// Removes the rows of views that belong to no design document any more, and that this process has no functions for. Returns
  /// the names of these views.
  @discardableResult
  package func removeUnused() throws -> [String] {
    var names: [String] = []
    var used: Set<ByteString> = []
    try store.read { snapshot in
      try ViewRecord.forEach(in: snapshot.storage) { name, _ in
        if ViewName.parts(of: name) != nil { names.append(name) }
      }
      guard !names.isEmpty else { return }
      try snapshot.forEachDesign { design, body in
        for (view, _) in body["views"]?.object ?? [:] { used.insert(ByteString(design + "/" + view)) }
      }
    }
    let unused = names.filter { name in
      !used.contains(ByteString(name)) && registered(name).state.withLock { $0.definition == nil }
        && !isTemporary(name)
    }
    guard !unused.isEmpty else { return [] }
    try store.writingDerived { transaction in
      for name in unused { _ = try ViewRecord.delete(name, in: transaction) }
    }
    return unused
  }
}
