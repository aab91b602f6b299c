import Blobs
import Bytes
import Fleece
import Storage

/// Checks the invariants of the documents of a snapshot: records and revision trees, changes, separately
/// stored bodies, and the blobs that bodies refer to.
final class DocumentCheck {
  private let check: IntegrityCheck
  private let transaction: any ReadTransaction
  private let keyspaces: DocumentStore.Keyspaces
  private let isDeep: Bool
  private let tree = RevisionTree()
  private var state: DocumentStore.State?
  private var sharedKeys = SharedKeys.empty
  /// The sequences of documents.
  private var sequences = SequenceSet()
  /// The sequences of replaced revisions and of other leaves that have separately stored bodies.
  private var bodies = SequenceSet()
  private var conflicts = SequenceSet()
  private var counts: [Int: Int] = [:]
  private let blobs: BlobCheck?

  init(_ check: IntegrityCheck, _ keyspaces: DocumentStore.Keyspaces, blobs: BlobStore?) {
    self.check = check
    transaction = check.transaction
    self.keyspaces = keyspaces
    isDeep = check.isDeep
    self.blobs = blobs.map { BlobCheck($0, check) }
  }

  func run(_ store: DocumentStore) throws {
    try check.part("keyspace meta") { try checkMeta() }
    try check.part("keyspace docs") { try checkDocuments(keyspaces.docs, areDeleted: false) }
    try check.part("keyspace deleted") { try checkDocuments(keyspaces.deleted, areDeleted: true) }
    try check.part("keyspace changes") { try checkChanges() }
    try check.part("keyspace bodies") { try checkBodies(keyspaces.bodies, known: bodies) }
    try check.part("keyspace conflicts") { try checkBodies(keyspaces.conflicts, known: conflicts) }
    try check.part("keyspace history") { try checkHistories() }
    try check.part("keyspace expirations") { try checkExpirations() }
    try check.part("keyspace purges") { try checkPurges() }
    try check.part("keyspace sync") { try checkSync() }
    try checkCounts()
    if isDeep, let checked = transaction as? ChecksummedReadTransaction { try checkChecksums(checked) }
    if let blobs { try check.part("blobs") { try blobs.finish(store) } }
  }

  // MARK: meta

  private func checkMeta() throws {
    func isThere(_ name: String, _ isRight: ([UInt8]) -> Bool) throws {
      let value = try transaction.bytes(Array(name.utf8), in: keyspaces.meta)
      if value.map(isRight) != true { try check.report("keyspace meta", "\"\(name)\" is missing or wrong") }
    }
    try isThere("format") { $0.count == 1 && (1...DocumentStore.formatVersion).contains($0[0]) }
    try isThere("publicUUID") { $0.count == 16 }
    try isThere("privateUUID") { $0.count == 16 }
    do { state = try DocumentStore.State(transaction, keyspaces.meta) } catch {
      try check.report("keyspace meta", "\"state\" can't be read: \(error)")
    }
    do { sharedKeys = try DocumentStore.loadSharedKeys(transaction, keyspaces.meta) } catch {
      try check.report("keyspace meta", "\"sharedKeys\" can't be read: \(error)")
    }
    if let state, sharedKeys.count != state.sharedKeyCount {
      try check.report(
        "keyspace meta",
        "there are \(sharedKeys.count) shared keys, but \"state\" says \(state.sharedKeyCount)")
    }
  }

  // MARK: docs and deleted

  private func checkDocuments(_ keyspace: Keyspace, areDeleted: Bool) throws {
    try transaction.scan(keyspace, order: .stored) { key, value in
      counts[areDeleted ? 1 : 0, default: 0] += 1
      try check.step()
      let id = String(copying: key)
      let subject = "document '\(id)'"
      if (try? DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { _ in }) == nil {
        try check.report(subject, "this isn't a valid document ID")
      }
      do { try checkDocument(key, value, subject, isTombstone: areDeleted) } catch let error as DocumentError
      {
        try check.report(subject, error.message)
      }
      return true
    }
  }

  private func checkDocument(
    _ id: RawSpan, _ value: RawSpan, _ subject: String, isTombstone: Bool
  ) throws {
    let record = try DocumentRecord(value)
    if record.flags.contains(.deleted) != isTombstone {
      try check.report(
        subject,
        isTombstone
          ? "it is live, but stored among the tombstones"
          : "it is deleted, but stored among the live documents")
    }
    if sequences.insert(record.sequence) {
      try checkChange(id, record, subject)
    } else {
      try check.report(subject, "another document has the same sequence, \(record.sequence)")
    }
    if isTombstone, try transaction.contains(id, in: keyspaces.docs) {
      try check.report(subject, "there is a live document with the same ID")
    }
    try checkBody(
      record.body, keyCount: record.keyCount, subject, "its body",
      at: BlobCheck.Place(
        keyspace: isTombstone ? keyspaces.deleted : keyspaces.docs, key: [UInt8](copying: id)))
    try tree.decode(record.tree)
    if let history = record.history {
      // Pruned revisions that are still stored have bodies, too.
      try id.withUnsafeBytes { try tree.addHistory(of: $0, history, transaction, includingPruned: true) }
    }
    try checkTree(record, subject)
  }

  private func checkTree(_ record: DocumentRecord, _ subject: String) throws {
    let current = tree.nodes[0]
    if current.isDeleted != record.flags.contains(.deleted) {
      try check.report(
        subject,
        "its current revision is \(current.isDeleted ? "deleted" : "live"), but its flags say the opposite")
    }
    if !current.flags.contains(.hasBody) { try check.report(subject, "its current revision has no body") }
    if record.flags.contains(.conflicted) != tree.isConflicted {
      try check.report(
        subject, "it \(tree.isConflicted ? "is" : "isn't") conflicted, but its flags say the opposite")
    }
    for (index, node) in tree.nodes.enumerated() {
      if node.sequence > record.sequence {
        try check.report(
          subject, "the revision \(tree.revisionID(of: index)) is newer (\(node.sequence)) than the document")
      }
      guard index > 0, node.flags.contains(.hasBody) else { continue }
      let isNew = node.isLeaf ? conflicts.insert(node.sequence) : bodies.insert(node.sequence)
      if !isNew {
        try check.report(
          subject,
          "the body of \(tree.revisionID(of: index)) (\(node.sequence)) belongs to another revision too")
      }
      // Compaction removes bodies of replaced revisions. Those of leaves stay.
      guard node.isLeaf else { continue }
      let isThere = try withSequenceKey(node.sequence) {
        try transaction.contains($0.bytes, in: keyspaces.conflicts)
      }
      if !isThere {
        try check.report(
          subject, "the body of the conflicting revision \(tree.revisionID(of: index)) is missing")
      }
    }
  }

  /// Checks the document's entry in the changes.
  private func checkChange(_ id: RawSpan, _ record: DocumentRecord, _ subject: String) throws {
    let found = try withSequenceKey(record.sequence) { key in
      try transaction.read(key.bytes, in: keyspaces.changes) { value in
        guard let change = try? StoredChange(value), change.id.isEqual(to: id) else {
          return try check.report(subject, "the change \(record.sequence) belongs to another document")
        }
        // Only the change has the flag `fromSync`.
        if change.flags.subtracting(.fromSync) != record.flags {
          try check.report(subject, "the flags of its change \(record.sequence) are different")
        }
      }
    }
    if !found { try check.report(subject, "its change \(record.sequence) is missing") }
  }

  private func checkBody(
    _ body: RawSpan, keyCount: Int, _ subject: String, _ what: String,
    at place: BlobCheck.Place
  ) throws {
    if keyCount > sharedKeys.count {
      try check.report(subject, "\(what) needs \(keyCount) shared keys, but there are \(sharedKeys.count)")
    }
    guard let root = Value(rootOf: body), root.type == .dict else {
      return try check.report(subject, "\(what) can't be read")
    }
    if isDeep {
      do {
        try body.withUnsafeBytes { try validate($0, sharedKeyCount: min(keyCount, sharedKeys.count)) }
      } catch {
        return try check.report(subject, "\(what) can't be read: \(error)")
      }
    }
    guard let blobs, mayNameBlob(body) else { return }
    try forEachBlobReference(in: root, sharedKeys: sharedKeys) {
      try blobs.look(at: $0, subject, place)
    }
  }

  // MARK: changes

  private func checkChanges() throws {
    try transaction.scan(keyspaces.changes) { key, value in
      counts[2, default: 0] += 1
      try check.step()
      guard let sequence = StoredChange.sequence(of: key), let change = try? StoredChange(value) else {
        try check.report("keyspace changes", "an entry can't be read")
        return true
      }
      // `checkChange` has checked that it belongs to the right document.
      if !sequences.contains(sequence) {
        let id = String(copying: change.id)
        try check.report(
          "keyspace changes", "the entry \(sequence) of '\(id)' isn't the latest change of a document")
      }
      return true
    }
  }

  // MARK: bodies and conflicts

  private func checkBodies(_ keyspace: Keyspace, known: SequenceSet) throws {
    let isOfLeaves = keyspace == keyspaces.conflicts
    let subject = isOfLeaves ? "keyspace conflicts" : "keyspace bodies"
    try transaction.scan(keyspace) { key, value in
      counts[isOfLeaves ? 4 : 3, default: 0] += 1
      try check.step()
      guard let sequence = StoredChange.sequence(of: key) else {
        try check.report(subject, "a key isn't a sequence")
        return true
      }
      if !known.contains(sequence) {
        try check.report(subject, "the body \(sequence) belongs to no revision")
      }
      do {
        let body = try BodyRecord(value)
        try checkBody(
          body.body, keyCount: body.keyCount, subject, "the body \(sequence)",
          at: BlobCheck.Place(keyspace: keyspace, key: [UInt8](copying: key)))
      } catch let error as DocumentError {
        try check.report(subject, "the body \(sequence): \(error.message)")
      }
      return true
    }
  }

  // MARK: history

  /// Checks that each block belongs to a document with older revisions. `checkDocument` has checked the
  /// blocks themselves.
  private func checkHistories() throws {
    guard let keyspace = try transaction.keyspace(named: HistoryBlock.keyspace) else { return }
    var last: [UInt8] = []
    try transaction.scan(keyspace, .all, order: .ascending, fetch: .keys) { key, _ in
      counts[6, default: 0] += 1
      try check.step()
      guard let id = HistoryBlock.documentID(in: key) else {
        try check.report("keyspace history", "a key can't be read")
        return true
      }
      guard !id.isEqual(to: last.span.bytes) else { return true }
      last = [UInt8](copying: id)
      var hasHistory = false
      for keyspace in [keyspaces.docs, keyspaces.deleted] {
        let found = try transaction.read(id, in: keyspace) {
          hasHistory = try DocumentRecord($0).history != nil
        }
        if found { break }
      }
      if !hasHistory {
        let name = String(decoding: last, as: UTF8.self)
        try check.report("keyspace history", "'\(name)' has older revisions, but no document refers to them")
      }
      return true
    }
    let (said, found) = (try transaction.count(of: keyspace), counts[6] ?? 0)
    if said != found {
      try check.report("keyspace history", "it has \(found) entries, but its count says \(said)")
    }
  }

  // MARK: purges

  private func checkPurges() throws {
    guard let keyspace = try transaction.keyspace(named: PurgeRecord.keyspace) else { return }
    try transaction.scan(keyspace) { key, value in
      try check.step()
      if !PurgeRecord.isValid(key, value) {
        try check.report("keyspace purges", "the entry \(EntryChecksums.words(for: key)) can't be read")
      }
      return true
    }
  }

  // MARK: sync and marks

  /// Checks that the entries can be read, and that each mark belongs to a document and a known remote database.
  private func checkSync() throws {
    var remotes: Set<UInt32> = []
    if let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) {
      try transaction.scan(keyspace) { key, value in
        try check.step()
        if let problem = SyncRecords.fault(key, value, &remotes) {
          try check.report("keyspace sync", problem)
        }
        return true
      }
    }
    guard let marks = try transaction.keyspace(named: SyncRecords.marks) else { return }
    try transaction.scan(marks) { key, value in
      try check.step()
      var reader = ByteReader(value)
      guard key.byteCount > 4, StoredRevisionID(&reader) != nil, reader.rest.isEmpty else {
        try check.report("keyspace marks", "the entry \(EntryChecksums.words(for: key)) can't be read")
        return true
      }
      let remote = UInt32(bigEndian: key.unsafeLoadUnaligned(as: UInt32.self))
      let id = key.extracting(droppingFirst: 4)
      let name = String(copying: id)
      if !remotes.contains(remote) {
        try check.report("keyspace marks", "'\(name)' has a mark of the remote \(remote), which isn't known")
      }
      if try !transaction.contains(id, in: keyspaces.docs),
        try !transaction.contains(id, in: keyspaces.deleted)
      {
        try check.report("keyspace marks", "'\(name)' has a mark, but there is no such document")
      }
      return true
    }
  }

  // MARK: expirations and expiry

  /// Checks that each document with an expiration time exists and has an entry in both keyspaces.
  private func checkExpirations() throws {
    try transaction.scan(keyspaces.expirations) { id, time in
      counts[5, default: 0] += 1
      try check.step()
      let name = String(copying: id)
      if try !transaction.contains(id, in: keyspaces.docs),
        try !transaction.contains(id, in: keyspaces.deleted)
      {
        try check.report("keyspace expirations", "'\(name)' has an expiration, but there is no such document")
      }
      let key = [UInt8](copying: time) + [UInt8](copying: id)
      let isByTime = try time.byteCount == 8 && transaction.contains(key.span.bytes, in: keyspaces.expiry)
      if !isByTime {
        try check.report("keyspace expirations", "'\(name)' has an expiration, but no entry in \"expiry\"")
      }
      return true
    }
    let found = counts[5] ?? 0
    let byTime = try transaction.count(of: keyspaces.expiry)
    if byTime != found {
      try check.report(
        "keyspace expiry", "it has \(byTime) entries, but \(found) documents have an expiration")
    }
  }

  // MARK: Checksums

  /// Checks the checksum of every entry, even if its content is plausible.
  private func checkChecksums(_ transaction: ChecksummedReadTransaction) throws {
    for name in EntryChecksums.keyspaceNames {
      try check.part("keyspace \(name)") {
        try transaction.forEachChecksum(in: name) { key, isRight in
          try check.step()
          guard !isRight else { return }
          try check.report(
            "keyspace \(name)",
            "the entry \(EntryChecksums.words(for: key)) doesn't match its checksum")
        }
      }
    }
  }

  // MARK: Counts

  private func checkCounts() throws {
    let all = [
      ("docs", keyspaces.docs), ("deleted", keyspaces.deleted), ("changes", keyspaces.changes),
      ("bodies", keyspaces.bodies), ("conflicts", keyspaces.conflicts),
    ]
    for (number, (name, keyspace)) in all.enumerated() {
      try check.part("keyspace \(name)") {
        let said = try transaction.count(of: keyspace)
        let found = counts[number] ?? 0
        if said != found {
          try check.report("keyspace \(name)", "it has \(found) entries, but its count says \(said)")
        }
      }
    }
  }
}
