// What a database keeps for sync. Both keyspaces are made when they are first needed.
//
//   sync    kind:u8 name → version:u8=1 record
//             "c" checkpoint ID → JSON                      the state of a replicator of this database
//             "p" checkpoint ID → revision:varint JSON      the state that a peer has stored here; its revision is N-cc
//             "r" remote ID → number:varint                 the number of a remote database, from 1
//             "k" "all" → JSON                              the cookies of servers
//             "g" …                                         DocumentStore+PurgeRequests.swift
//   marks   number:u32 big-endian document ID → revision ID (RevisionID.swift)
//             the revision that is known to be the remote's current one
//
// A mark exists only for a document or tombstone that exists. A purge removes the document's marks.

import Bytes
import Fleece
import Storage

/// The names and the records of the keyspaces `sync` and `marks`.
enum SyncRecords {
  static let keyspace = "sync"
  static let marks = "marks"
  static let version: UInt8 = 1
  /// The most bytes of a checkpoint ID or a remote ID.
  static let maximumNameBytes = 500

  enum Kind: UInt8 {
    case checkpoint = 0x63
    case purgeRequest = 0x67
    case cookies = 0x6B
    case peerCheckpoint = 0x70
    case remote = 0x72
  }

  static func key(_ kind: Kind, _ name: String) throws -> [UInt8] {
    let bytes = Array(name.utf8)
    guard !bytes.isEmpty, bytes.count <= maximumNameBytes else {
      throw StorageError(
        .invalidArgument, "the name of a checkpoint or a remote database has 1 to \(maximumNameBytes) bytes")
    }
    return [kind.rawValue] + bytes
  }

  static func markKey(_ remote: UInt32, _ id: UnsafeRawBufferPointer, into buffer: inout ByteBuffer) {
    buffer.removeAll()
    buffer.append(bigEndian: remote)
    buffer.append(id)
  }

  static let damaged = DocumentError(.damaged, "an entry of the keyspace sync can't be read")

  /// Returns what follows the version of an entry.
  @_lifetime(copy value)
  static func content(of value: RawSpan) throws -> RawSpan {
    guard value.byteCount > 0 else { throw damaged }
    guard value.unsafeLoad(as: UInt8.self) == version else {
      throw DocumentError(
        .unsupportedVersion, "an entry of the keyspace sync has a format that this release doesn't support")
    }
    return value.extracting(droppingFirst: 1)
  }
}

extension SyncRecords {
  /// Returns what is wrong with an entry of the keyspace `sync`, or nil. Adds the number of a remote database.
  static func fault(_ key: RawSpan, _ value: RawSpan, _ remotes: inout Set<UInt32>) -> String? {
    let text = EntryChecksums.words(for: key)
    guard key.byteCount > 1, let kind = Kind(rawValue: key.unsafeLoad(as: UInt8.self)),
      let content = try? content(of: value)
    else { return "the entry \(text) can't be read" }
    var reader = ByteReader(content)
    switch kind {
    case .checkpoint, .cookies: break
    case .purgeRequest:
      guard key.byteCount == 9 else { return "the entry \(text) has no number" }
    case .peerCheckpoint:
      guard let revision = reader.varint(), revision > 0 else { return "the entry \(text) has no revision" }
    case .remote:
      guard let number = reader.varint().flatMap({ UInt32(exactly: $0) }), number > 0 else {
        return "the entry \(text) has no number"
      }
      guard remotes.insert(number).inserted else { return "two remote databases have the number \(number)" }
      return nil
    }
    guard (try? reader.rest.withUnsafeBytes({ try JSONValue(json: $0) }))?.object != nil else {
      return "the entry \(text) isn't a JSON object"
    }
    return nil
  }
}

extension DocumentStore {
  private func syncRecord(_ kind: SyncRecords.Kind, _ name: String) throws -> [UInt8]? {
    let key = try SyncRecords.key(kind, name)
    return try reading { transaction, _ in
      guard let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) else { return nil }
      return try transaction.withValue(at: key, in: keyspace) {
        [UInt8](copying: try SyncRecords.content(of: $0))
      }
    }
  }

  private func changeSync<Result>(_ body: (any WriteTransaction, Keyspace) throws -> Result) throws -> Result
  {
    try writing { writer in
      try writer.checkWritable()
      let transaction = try writer.transaction
      return try writer.mutating {
        let keyspace =
          try transaction.keyspace(named: SyncRecords.keyspace)
          ?? transaction.createKeyspace(SyncRecords.keyspace, shape: .entries)
        return try body(transaction, keyspace)
      }
    }
  }

  // MARK: Checkpoints

  /// Returns the checkpoint of a replicator of this database as JSON, or nil.
  package func syncCheckpoint(_ id: String) throws -> [UInt8]? { try syncRecord(.checkpoint, id) }

  /// Stores the checkpoint of a replicator of this database. Nil removes it.
  package func setSyncCheckpoint(_ id: String, _ json: [UInt8]?) throws {
    let key = try SyncRecords.key(.checkpoint, id)
    try changeSync { transaction, keyspace in
      if let json {
        try transaction.put(key, [SyncRecords.version] + json, in: keyspace)
      } else {
        _ = try transaction.delete(key.span.bytes, in: keyspace)
      }
    }
  }

  /// Returns the cookies that servers have set, as JSON, or nil.
  package func syncCookies() throws -> [UInt8]? { try syncRecord(.cookies, Self.allCookies) }

  /// Stores the cookies that servers have set.
  package func setSyncCookies(_ json: [UInt8]) throws {
    let key = try SyncRecords.key(.cookies, Self.allCookies)
    try changeSync { try $0.put(key, [SyncRecords.version] + json, in: $1) }
  }
  private static let allCookies = "all"

  /// Returns the checkpoint that a peer has stored here, with its revision, or nil.
  package func peerCheckpoint(_ id: String) throws -> (json: [UInt8], revision: UInt64)? {
    guard let record = try syncRecord(.peerCheckpoint, id) else { return nil }
    var reader = ByteReader(record.span.bytes)
    guard let revision = reader.varint(), revision > 0 else { throw SyncRecords.damaged }
    return ([UInt8](copying: reader.rest), revision)
  }

  /// Stores the checkpoint of a peer and returns its new revision. Returns nil, and changes nothing, unless `revision`
  /// is the stored one; nil if there is none.
  package func setPeerCheckpoint(_ id: String, _ json: [UInt8], basedOn revision: UInt64?) throws -> UInt64? {
    let key = try SyncRecords.key(.peerCheckpoint, id)
    return try changeSync { transaction, keyspace in
      var stored: UInt64?
      _ = try transaction.read(key.span.bytes, in: keyspace) { value in
        var reader = ByteReader(try SyncRecords.content(of: value))
        stored = reader.varint()
      }
      guard stored == revision else { return nil }
      let new = (stored ?? 0) + 1
      var record = ByteBuffer(capacity: json.count + 16)
      record.append(SyncRecords.version)
      record.append(varint: new)
      json.withUnsafeBytes { record.append($0) }
      try transaction.put(key.span.bytes, record.bytes.bytes, in: keyspace)
      return new
    }
  }

  // MARK: Remotes

  /// Returns the number of a remote database, and gives it one if it has none.
  package func remoteNumber(_ remote: String) throws -> UInt32 {
    func number(_ record: RawSpan) throws -> UInt32 {
      var reader = ByteReader(record)
      guard let number = reader.varint().flatMap({ UInt32(exactly: $0) }), number > 0 else {
        throw SyncRecords.damaged
      }
      return number
    }
    if let record = try syncRecord(.remote, remote) { return try number(record.span.bytes) }
    let key = try SyncRecords.key(.remote, remote)
    return try changeSync { transaction, keyspace in
      let stored = try transaction.withValue(at: key, in: keyspace) {
        try number(try SyncRecords.content(of: $0))
      }
      if let stored { return stored }
      let last = try Self.lastRemote(transaction)
      var record = ByteBuffer(capacity: 8)
      record.append(SyncRecords.version)
      record.append(varint: UInt64(last) + 1)
      try transaction.put(key.span.bytes, record.bytes.bytes, in: keyspace)
      if try transaction.keyspace(named: SyncRecords.marks) == nil {
        _ = try transaction.createKeyspace(SyncRecords.marks, shape: .entries)
      }
      return last + 1
    }
  }

  /// Returns the highest number of a remote database, 0 if there is none.
  static func lastRemote(_ transaction: any ReadTransaction) throws -> UInt32 {
    guard let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) else { return 0 }
    var last: UInt32 = 0
    try transaction.scan(
      keyspace, .prefix([SyncRecords.Kind.remote.rawValue]), order: .ascending, fetch: .entries
    ) { _, value in
      var reader = ByteReader(try SyncRecords.content(of: value))
      guard let number = reader.varint().flatMap({ UInt32(exactly: $0) }) else { throw SyncRecords.damaged }
      last = max(last, number)
      return true
    }
    return last
  }

  // MARK: Marks

  /// Returns the revision that is known to be the remote's current one, nil if none is known.
  package func mark(of id: String, remote: UInt32) throws -> String? {
    try reading { transaction, _ in
      guard let marks = try transaction.keyspace(named: SyncRecords.marks) else { return nil }
      return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { id in
        var key = ByteBuffer(capacity: 512)
        SyncRecords.markKey(remote, id, into: &key)
        return try Self.mark(at: key.bytes, marks, transaction)
      }
    }
  }

  static func mark(
    at key: UnsafeRawBufferPointer, _ marks: Keyspace, _ transaction: any ReadTransaction
  ) throws -> String? {
    try transaction.withValue(at: key.bytes, in: marks) { value in
      var reader = ByteReader(value)
      guard let id = StoredRevisionID(&reader) else { throw SyncRecords.damaged }
      return id.text
    }
  }

  /// Returns those of the revisions that aren't marked as the remote's current ones.
  package func unmarked(_ revisions: [(id: String, revision: String)], remote: UInt32) throws
    -> [(id: String, revision: String)]
  {
    try reading { transaction, _ in
      guard let marks = try transaction.keyspace(named: SyncRecords.marks) else { return revisions }
      var key = ByteBuffer(capacity: 512)
      return try revisions.filter { revision in
        try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { id in
          SyncRecords.markKey(remote, id, into: &key)
          return try Self.mark(at: key.bytes, marks, transaction) != revision.revision
        }
      }
    }
  }

  /// Marks revisions as the remote's current ones, in one transaction. Marks that are there already cost no
  /// transaction. A document that doesn't exist any more gets none. Without `movesBack`, a mark stays if the revision is an ancestor of
  /// the one that is marked.
  package func mark(_ revisions: [(id: String, revision: String)], remote: UInt32, movesBack: Bool = true)
    throws
  {
    let new = try unmarked(revisions, remote: remote)
    guard !new.isEmpty else { return }
    try writing { writer in
      try writer.checkWritable()
      for revision in new {
        try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { id in
          guard try movesBack ? writer.contains(id) : writer.loadUnordered(id) != nil else { return }
          if !movesBack, try writer.isOlderThanMark(id, revision.revision, remote: remote) { return }
          try writer.mutating { try writer.mark(id, revision.revision, remote: remote) }
        }
      }
    }
  }
}

extension DocumentWriter {
  /// Marks a revision of a document that exists as the remote's current one.
  func mark(_ id: UnsafeRawBufferPointer, _ revision: String, remote: UInt32) throws {
    var revision = revision
    text.removeAll()
    let stored = revision.withUTF8 { utf8 -> (UInt64, Bool)? in
      guard let (generation, suffix) = RevisionID.parse(UnsafeRawBufferPointer(utf8)) else { return nil }
      return (generation, text.append(suffix: suffix))
    }
    guard let (generation, isText) = stored else {
      throw DocumentError(.invalidRevisionID, "\"\(revision)\" isn't a revision ID", documentID: idText(id))
    }
    let marks = try marksKeyspace()
    other.removeAll()
    StoredRevisionID(generation: generation, suffix: StoredSuffix(bytes: text.bytes, isText: isText))
      .append(to: &other)
    SyncRecords.markKey(remote, id, into: &markKey)
    try transaction.put(markKey.bytes, other.bytes, in: marks)
  }

  /// Whether a revision is an ancestor of the one that is marked. `tree` has to be that of the document.
  func isOlderThanMark(_ id: UnsafeRawBufferPointer, _ revision: String, remote: UInt32) throws -> Bool {
    guard let marks = try marks ?? transaction.keyspace(named: SyncRecords.marks) else { return false }
    SyncRecords.markKey(remote, id, into: &markKey)
    guard let marked = try DocumentStore.mark(at: markKey.bytes, marks, transaction),
      let own = index(of: revision), let place = index(of: marked)
    else { return false }
    var next = Int(tree.nodes[place].parent)
    while next >= 0 {
      if next == own { return true }
      next = Int(tree.nodes[next].parent)
    }
    return false
  }

  private func index(of revision: String) -> Int? {
    text.removeAll()
    return appendSuffix(of: revision).flatMap { tree.index(of: suffix($0.generation, $0.start, $0.isText)) }
  }

  private func marksKeyspace() throws -> Keyspace {
    if let marks { return marks }
    let found =
      try transaction.keyspace(named: SyncRecords.marks)
      ?? transaction.createKeyspace(SyncRecords.marks, shape: .entries)
    marks = found
    return found
  }

  /// The most remote databases whose marks keep revisions from being pruned: those that were known last.
  private static let keepingRemotes: UInt32 = 8

  /// Returns the places in `tree` of the revisions that are known to be current on remote databases. They are the bases of
  /// deltas and of merges.
  func markedRevisions(of id: UnsafeRawBufferPointer) throws -> [Int] {
    let last = try lastRemote ?? DocumentStore.lastRemote(transaction)
    lastRemote = last
    guard last > 0, let keyspace = try marks ?? transaction.keyspace(named: SyncRecords.marks) else {
      return []
    }
    marks = keyspace
    var places: [Int] = []
    for remote in (last > Self.keepingRemotes ? last - Self.keepingRemotes + 1 : 1)...last {
      SyncRecords.markKey(remote, id, into: &markKey)
      _ = try transaction.read(markKey.bytes.bytes, in: keyspace) { value in
        var reader = ByteReader(value)
        guard let revision = StoredRevisionID(&reader) else { throw SyncRecords.damaged }
        if let place = tree.index(of: revision), !places.contains(place) { places.append(place) }
      }
    }
    return places
  }

  /// Removes the marks of a document that is purged.
  func removeMarks(of id: UnsafeRawBufferPointer) throws {
    guard let keyspace = try marks ?? transaction.keyspace(named: SyncRecords.marks) else { return }
    marks = keyspace
    let last = try lastRemote ?? DocumentStore.lastRemote(transaction)
    lastRemote = last
    guard last > 0 else { return }
    for remote in 1...last {
      SyncRecords.markKey(remote, id, into: &markKey)
      _ = try transaction.delete(markKey.bytes, in: keyspace)
    }
  }
}

extension StoredRevisionID {
  /// The text form.
  var text: String {
    let digits = String(generation)
    return String(unsafeUninitializedCapacity: digits.utf8.count + 1 + suffix.bytes.count * 2) { buffer in
      var count = 0
      for byte in digits.utf8 {
        buffer[count] = byte
        count += 1
      }
      buffer[count] = UInt8(ascii: "-")
      count += 1
      if suffix.isText {
        for byte in suffix.bytes {
          buffer[count] = byte
          count += 1
        }
      } else if let start = buffer.baseAddress {
        Hex.write(suffix.bytes, to: UnsafeMutableRawPointer(start + count))
        count += suffix.bytes.count * 2
      }
      return count
    }
  }
}
