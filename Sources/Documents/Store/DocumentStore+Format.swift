import Storage

// meta/format   version:u8, which says how entries are stored
//
//   1    entries without checksums
//   2    the same, once there was an index: releases that don't maintain indexes refuse it
//   3    entries end with a checksum (EntryChecksums.swift), this one as well
//   4    the last sequence is the newest change's: releases that take it from meta/state alone would give numbers twice

extension DocumentStore {
  /// What a new database begins with.
  static let formatVersion: UInt8 = 4
  private static let firstFormatWithChecksums: UInt8 = 3
  private static let formatKey = Array("format".utf8)

  /// How the documents in a transaction are stored.
  struct StoredFormat {
    let version: UInt8
    /// Nil for a format without them.
    let checksums: EntryChecksums?
    /// Whether it is what this release writes.
    var isCurrent: Bool { version == formatVersion }
  }

  /// Which of the formats that this release knows the documents have; nil when there are none. It is read from the
  /// engine's own transaction.
  ///
  /// Throws `unsupportedVersion` for a format of a later release and `damaged` for what is none.
  static func storedFormat(_ transaction: any ReadTransaction, in location: String) throws -> StoredFormat? {
    guard let meta = try transaction.keyspace(named: "meta"),
      let stored = try transaction.bytes(formatKey, in: meta)
    else { return nil }
    guard let version = stored.first, version > 0 else { throw damagedFormat(location) }
    guard version <= formatVersion else {
      throw DocumentError(
        .unsupportedVersion,
        "the documents in \(location) are of format \(version); this release knows \(formatVersion)")
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

  /// Makes what a database begins with, or brings that of an earlier release up to date: in the one transaction.
  static func create(in transaction: any WriteTransaction, location: String) throws {
    let old = try storedFormat(transaction, in: location)
    // Another process may have been first.
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

  /// Gives the entries of a keyspace their checksums. `plain` reads them as they are, `checked` writes them.
  ///
  /// Bytes that are lent can't be written over: entries are copied, at most `mostCopied` and one at a time.
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

  /// A snapshot to read entries in, and what is needed for that. `verifying` holds each entry that is read against its
  /// checksum, as `Options.verifiesChecksums` does always.
  func beginSnapshot(verifying: Bool = false) throws -> (any ReadTransaction, Context) {
    let (transaction, context) = try beginPlainSnapshot()
    return (context.checked(transaction, verifying: verifying), context)
  }

  /// The engine's own snapshot, whose entries end with their checksums.
  private func beginPlainSnapshot() throws -> (any ReadTransaction, Context) {
    let (transaction, current) = try beginRead()
    guard current.checksums == nil else { return (transaction, current) }
    do {
      guard let format = try Self.storedFormat(transaction, in: current.engine.location),
        format.checksums != nil
      else {
        return (transaction, current)
      }
      // It was opened for reading as an earlier release had left it; another process has converted it since.
      return (transaction, try replaceContext(from: transaction, format, current.engine))
    } catch {
      transaction.end()
      throw error
    }
  }

  /// How many entries a keyspace has, in a batch or on a snapshot. No entry is read, so none needs its checksum.
  func count(of keyspace: (Keyspaces) -> Keyspace) throws -> Int {
    if isInBatch, let transaction = writer.transaction, let context = writer.context {
      return try transaction.count(of: keyspace(context.keyspaces))
    }
    return try repeating(.snapshotExpired) {
      let (transaction, context) = try beginPlainSnapshot()
      defer { transaction.end() }
      return try transaction.count(of: keyspace(context.keyspaces))
    }
  }

  /// Runs `body` on a snapshot of what is committed, also inside a batch. When that expires, `body` is run again on a new
  /// one, up to `attempts` times in all; then `snapshotExpired` is thrown.
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
  /// The entries of an engine's transaction without their checksums.
  func checked(_ transaction: any ReadTransaction, verifying: Bool = false) -> any ReadTransaction {
    guard let checksums else { return transaction }
    return ChecksummedReadTransaction(transaction, checksums, verifies: verifying || verifiesChecksums)
  }

  /// A transaction that writes entries with their checksums.
  func checked(_ transaction: any WriteTransaction) -> any WriteTransaction {
    guard let checksums else { return transaction }
    return ChecksummedWriteTransaction(transaction, checksums, verifies: verifiesChecksums)
  }
}
