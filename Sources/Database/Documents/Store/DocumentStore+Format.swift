import Storage

// meta/format   version:u8, which says how entries are stored
//
//   1    entries without checksums
//   2    as 1, after an index was created: releases that don't maintain indexes reject it
//   3    entries end with a checksum (EntryChecksums.swift), including this one
//   4    the last sequence is that of the newest change: releases that read it from meta/state alone would
//        assign sequences twice

extension DocumentStore {
  /// The format version of new databases.
  static let formatVersion: UInt8 = 4
  private static let firstFormatWithChecksums: UInt8 = 3
  private static let formatKey = Array("format".utf8)

  /// The format of the documents that a transaction reads.
  struct StoredFormat {
    let version: UInt8
    /// Nil if entries have no checksums in this format.
    let checksums: EntryChecksums?
    /// Whether it is the format that this release writes.
    var isCurrent: Bool { version == formatVersion }
  }

  /// Returns the format of the stored documents, or nil if there are none. Reads it from the engine's own
  /// transaction.
  ///
  /// Throws `unsupportedVersion` for the format of a later release and `damaged` for an invalid format entry.
  static func storedFormat(_ transaction: any ReadTransaction, in location: String) throws -> StoredFormat? {
    guard let meta = try transaction.keyspace(named: "meta"),
      let stored = try transaction.bytes(formatKey, in: meta)
    else { return nil }
    guard let version = stored.first, version > 0 else { throw damagedFormat(location) }
    guard version <= formatVersion else {
      throw DocumentError(
        .unsupportedVersion,
        "the documents in \(location) have format \(version); this release reads format \(formatVersion)")
    }
    guard version >= firstFormatWithChecksums else {
      guard stored.count == 1 else { throw damagedFormat(location) }
      return StoredFormat(version: version, checksums: nil)
    }
    let checksums = try EntryChecksums(transaction)
    guard let beginning = checksums.beginning(in: meta),
      try EntryChecksums.value(
        of: stored.span.bytes, at: formatKey.span.bytes, beginning, verifies: true
      ).byteCount == 1
    else { throw damagedFormat(location) }
    return StoredFormat(version: version, checksums: checksums)
  }

  private static func damagedFormat(_ location: String) -> DocumentError {
    DocumentError(.damaged, "the database's own records can't be read in \(location)")
  }

  /// Creates the keyspaces and records of a new database, or upgrades those of an earlier release, in
  /// `transaction`.
  static func create(in transaction: any WriteTransaction, location: String) throws {
    let old = try storedFormat(transaction, in: location)
    // Another process may have created or upgraded it in the meantime.
    guard old?.isCurrent != true else { return }
    let shapes: [(String, KeyspaceShape)] = [
      ("meta", .entries), ("docs", .documents), ("deleted", .documents), ("changes", .sequences),
      ("bodies", .sequences), ("conflicts", .sequences), ("expiry", .entries), ("expirations", .entries),
    ]
    var keyspaces = try transaction.keyspaces()
    for (name, shape) in shapes where keyspaces[name] == nil {
      keyspaces[name] = try transaction.createKeyspace(name, shape: shape)
    }
    guard let meta = keyspaces["meta"] else { throw damagedFormat(location) }
    let checked = ChecksummedWriteTransaction(transaction, try EntryChecksums(transaction), verifies: false)
    if old == nil {
      for name in ["publicUUID", "privateUUID"] {
        try checked.put(Array(name.utf8), randomUUID(), in: meta)
      }
    } else if old?.checksums == nil {
      for name in EntryChecksums.keyspaceNames {
        if let keyspace = keyspaces[name] { try addChecksums(in: keyspace, transaction, checked) }
      }
    }
    try checked.put(formatKey, [formatVersion], in: meta)
  }

  /// Adds checksums to the entries of a keyspace. `plain` reads the entries as stored, `checked` writes them
  /// with checksums.
  ///
  /// A transaction can't overwrite bytes that it lends. So entries are copied in groups: a group ends with
  /// the entry that brings it to `mostCopied` bytes.
  private static func addChecksums(
    in keyspace: Keyspace, _ plain: any WriteTransaction, _ checked: any WriteTransaction
  ) throws {
    let mostCopied = 1 << 20
    var lower = KeyRange.Bound.unbounded
    while true {
      var entries: [(key: [UInt8], value: [UInt8])] = []
      var copied = 0
      try plain.scan(keyspace, KeyRange(lower: lower)) { key, value in
        entries.append(([UInt8](copying: key), [UInt8](copying: value)))
        copied += key.byteCount + value.byteCount
        return copied < mostCopied
      }
      for entry in entries { try checked.put(entry.key, entry.value, in: keyspace) }
      guard let last = entries.last, copied >= mostCopied else { return }
      lower = .exclusive(last.key)
    }
  }

  // MARK: Transactions

  /// Begins a snapshot whose entries come without their checksums, and returns it with its context. With
  /// `verifying`, every entry is verified against its checksum when it is read. `Options.verifiesChecksums`
  /// has the same effect on all reads.
  func beginSnapshot(verifying: Bool = false) throws -> (any ReadTransaction, Context) {
    let (transaction, context) = try beginPlainSnapshot()
    return (context.checked(transaction, verifying: verifying), context)
  }

  /// Begins the engine's own snapshot, in which entries end with their checksums.
  private func beginPlainSnapshot() throws -> (any ReadTransaction, Context) {
    let (transaction, current) = try beginRead()
    guard current.checksums == nil else { return (transaction, current) }
    do {
      guard let format = try Self.storedFormat(transaction, in: current.engine.location),
        format.checksums != nil
      else {
        return (transaction, current)
      }
      // The database was opened read-only in an earlier format. Another process has converted it since.
      return (transaction, try replaceContext(from: transaction, format, current.engine))
    } catch {
      transaction.end()
      throw error
    }
  }

  /// Returns the number of entries of a keyspace, in the open batch or in a snapshot. It reads no entry, so
  /// it needs no checksums.
  func count(of keyspace: (Keyspaces) -> Keyspace) throws -> Int {
    if isInBatch, let transaction = writer.openTransaction, let context = writer.context {
      try writer.writePending()
      return try transaction.count(of: keyspace(context.keyspaces))
    }
    return try repeating(.snapshotExpired) {
      let (transaction, context) = try beginPlainSnapshot()
      defer { transaction.end() }
      return try transaction.count(of: keyspace(context.keyspaces))
    }
  }

  /// Runs `body` on a snapshot of the committed state, even inside a batch. When the snapshot expires, `body`
  /// runs again on a new one, up to `attempts` times in all. Then `snapshotExpired` is thrown.
  func withSnapshot<Result>(
    attempts: Int = DocumentStore.defaultAttempts, verifying: Bool = false,
    _ body: (any ReadTransaction, Context) throws -> Result
  ) throws -> Result {
    try repeating(.snapshotExpired, attempts: attempts) {
      let (transaction, context) = try beginSnapshot(verifying: verifying)
      defer { transaction.end() }
      return try body(transaction, context)
    }
  }
}

extension DocumentStore.Context {
  /// Returns a transaction that reads entries of `transaction` without their checksums.
  func checked(_ transaction: any ReadTransaction, verifying: Bool = false) -> any ReadTransaction {
    guard let checksums else { return transaction }
    return ChecksummedReadTransaction(transaction, checksums, verifies: verifying || verifiesChecksums)
  }

  /// Returns a transaction that reads entries without their checksums and writes them with checksums.
  func checked(_ transaction: any WriteTransaction) -> any WriteTransaction {
    guard let checksums else { return transaction }
    return ChecksummedWriteTransaction(transaction, checksums, verifies: verifiesChecksums)
  }
}
