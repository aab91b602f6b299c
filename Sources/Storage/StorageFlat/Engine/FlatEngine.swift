import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A storage engine over a library that has one ordered map in a directory of its own.
package final class FlatEngine: EngineMaintenance {
  /// What opens the library in a directory, which is locked.
  package typealias Opening =
    @Sendable (_ directory: EngineDirectory, _ options: EngineOptions) throws ->
    any FlatLibrary

  /// A kind of engine.
  package struct Kind: Sendable {
    let name: String
    let fileExtension: String
    let maximumReaders: Int
    /// Whether several processes can have a file open for reading.
    let sharesReading: Bool
    /// `EngineType.compressions`.
    let compressions: [String]
    let open: Opening

    package init(
      name: String, fileExtension: String, maximumReaders: Int, sharesReading: Bool, compressions: [String],
      open: @escaping Opening
    ) {
      self.name = name
      self.fileExtension = fileExtension
      self.maximumReaders = maximumReaders
      self.sharesReading = sharesReading
      self.compressions = compressions
      self.open = open
    }

    /// The engine's type.
    package var type: EngineType {
      EngineType(name: name, fileExtension: fileExtension, encrypts: false, compressions: compressions) {
        try FlatEngine(self, path: $0, options: $1)
      }
    }
  }

  package let location: String
  package let durability: Durability
  package let isReadOnly: Bool
  package let library: String
  package let settings: [(name: String, value: String)]
  let kind: Kind
  let queue = GroupCommit()
  /// The number of forks until the engine was opened.
  let forks: Int
  let base: any FlatLibrary
  let directory: EngineDirectory
  private let life: Lock<Life>

  private struct Life {
    var catalog: FlatCatalog
    /// What the last write transaction knew of the keyspaces. Empty while one is open, and after one that failed.
    var extents = FlatExtents()
    /// Whether the library was opened anew, and the catalog couldn't be read again.
    var isStale = false
    /// Open snapshots.
    var readers = 0
    /// Whether a write transaction is open.
    var isWriting = false
    /// Calls that use the library without a snapshot.
    var users = 0
    var isClosed = false
  }

  package init(_ kind: Kind, path: String, options: EngineOptions) throws {
    guard options.key == nil else {
      throw StorageError(.notEncrypted, "the engine \(kind.name) can't encrypt", path: path)
    }
    forks = ForkCount.register()
    let directory = try EngineDirectory(
      path, engine: kind.name, options, isShared: options.isReadOnly && kind.sharesReading)
    let base = try kind.open(directory, options)
    do {
      try directory.checkSequence(base.sequence)
      let snapshot = try base.beginRead()
      defer { snapshot.end() }
      life = Lock(Life(catalog: try FlatCatalog(snapshot, path: path)))
    } catch {
      _ = try? base.close()
      throw error
    }
    self.kind = kind
    self.base = base
    self.directory = directory
    location = path
    durability = options.durability
    isReadOnly = options.isReadOnly
    library = base.library
    settings = base.settings
    if !isReadOnly {
      // After the death of this process too, the files are the owner's.
      if geteuid() == 0 { try directory.alignAccess() }
      finishDropping()
    }
  }

  package var name: String { kind.name }

  // MARK: Reading

  package func beginRead() throws -> any ReadTransaction {
    // Keyspaces are made and dropped under this lock, so the list fits the snapshot.
    let (snapshot, catalog) = try life.withLock { life in
      try checkOpen(life)
      guard life.readers < kind.maximumReaders else {
        throw StorageError(
          .tooManyReaders, "\(life.readers) snapshots are open, which is the limit", path: location)
      }
      if base.isUnreadable || life.isStale { try renew(&life) }
      let snapshot = try base.beginRead()
      life.readers += 1
      return (snapshot, life.catalog)
    }
    return FlatTransaction(self, snapshot, catalog)
  }

  package func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    try Self.check(key, in: keyspace)
    try life.withLock { life in
      try checkOpen(life)
      guard life.catalog.names[keyspace.number] != nil else { throw Self.noSuchKeyspace(keyspace) }
      if base.isUnreadable || life.isStale { try renew(&life) }
      // The value that is lent may be in the library's memory.
      life.readers += 1
    }
    defer { readerEnded() }
    let isFound = try FlatKey.with(key, keyspace.number) { key in
      try base.read(key) { try body($0.bytes) }
    }
    // The keyspace may have been dropped before the value was looked for.
    if !isFound {
      try life.withLock { life in
        guard life.catalog.names[keyspace.number] != nil else { throw Self.noSuchKeyspace(keyspace) }
      }
    }
    return isFound
  }

  func readerEnded() { life.withLock { $0.readers -= 1 } }

  // MARK: Writing

  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try life.withLock { try checkOpen($0) }
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the engine is open for reading", path: location)
    }
    try queue.run(FlatWriteGroup(self), body)
  }

  /// Begins a transaction of the library. After a failed commit, or failed work in the background, the library is opened
  /// anew first.
  func beginWrite() throws -> (any FlatWrite, FlatWriter.State) {
    try life.withLock { life in
      try checkOpen(life)
      if base.needsRenewal || life.isStale || base.hasFailedInBackground && isUnused(life) {
        try renew(&life)
      }
      let write = try base.beginWrite()
      life.isWriting = true
      let extents = life.extents
      life.extents = FlatExtents()
      return (write, FlatWriter.State(catalog: life.catalog, extents: extents))
    }
  }

  /// Whether the library can be opened anew.
  private func isUnused(_ life: Life) -> Bool { life.readers == 0 && !life.isWriting && life.users == 0 }

  /// Opens the library anew. Its log may have brought back a commit that was refused, and so a keyspace.
  private func renew(_ life: inout Life) throws {
    guard isUnused(life) else {
      throw StorageError(
        .busy, "a write has failed, and the files can be opened anew only when no snapshot is open",
        path: location)
    }
    try base.renew()
    life.isStale = true
    life.extents = FlatExtents()
    let snapshot = try base.beginRead()
    defer { snapshot.end() }
    life.catalog = try FlatCatalog(snapshot, path: location)
    life.isStale = false
  }

  /// Called after a write transaction of the library has ended.
  func writeEnded() { life.withLock { $0.isWriting = false } }

  /// Commits, and then removes the entries of dropped keyspaces.
  func commit(_ write: any FlatWrite, _ state: FlatWriter.State) throws {
    do { try end(write, state) } catch {
      // At once if it can be: a commit that was refused may be in the library's log, and until the library has been opened anew
      // the death of the process would bring it back.
      try? life.withLock { life in if base.needsRenewal || life.isStale { try renew(&life) } }
      throw error
    }
    if state.changesKeyspaces { finishDropping() }
  }

  private func end(_ write: any FlatWrite, _ state: FlatWriter.State) throws {
    defer { writeEnded() }
    guard state.changesKeyspaces else {
      try write.commit()
      life.withLock { $0.extents = state.extents }
      return
    }
    try life.withLock { life in
      try write.commit()
      life.catalog = state.catalog
      life.extents = state.extents
    }
  }

  /// Removes the entries of dropped keyspaces. What fails is tried again after the next opening.
  private func finishDropping() {
    let dropped = life.withLock { life in
      defer { life.catalog.dropped = [] }
      return life.catalog.dropped
    }
    for number in dropped {
      try? base.removeRange(
        from: FlatKey.prefix(number), to: FlatKey.prefix(number + 1), record: FlatKey.dropped(number))
    }
  }

  // MARK: Maintenance

  package func statistics() throws -> EngineStatistics {
    let readers = try life.withLock { life in
      try checkOpen(life)
      return life.readers
    }
    return try using {
      var entries: [String: Int] = [:]
      try read { transaction in
        for (name, keyspace) in try transaction.keyspaces() {
          entries[name] = try transaction.count(of: keyspace)
        }
      }
      // Each keyspace has a record of its own and one of its count.
      let (bytes, unused) = try size(entries: entries.values.reduce(2 * entries.count, +))
      let pages = max(1, (bytes + Self.pageBytes - 1) / Self.pageBytes)
      return EngineStatistics(
        fileBytes: bytes, pageBytes: Self.pageBytes, freePages: min(pages, unused / Self.pageBytes),
        totalPages: pages, entries: entries, openReaders: readers)
    }
  }

  /// Asks the library, which may write its files first. No write transaction is open meanwhile, so that nobody replaces the files.
  /// Inside of one, and when the files were replaced, nothing unused is known.
  private func size(entries: Int) throws -> (bytes: Int, unused: Int) {
    do {
      return try queue.exclusively {
        FileSize.of(location) > 0 ? try base.size(entries: entries) : (0, 0)
      }
    } catch let error as StorageError where error.code == .nestedWrite { return (FileSize.of(location), 0) }
  }

  /// A unit for statistics: the libraries have blocks of many sizes.
  private static let pageBytes = 4_096
  /// Copies the entries of a snapshot into a new directory.
  package func backup(to path: String) throws {
    try using {
      let snapshot = try beginRead()
      defer { snapshot.end() }
      guard let source = snapshot as? FlatTransaction else { return }
      let options = EngineOptions(creation: .createNew, durability: .full, isBulkLoad: true)
      let copy = try FlatEngine(kind, path: path, options: options)
      do {
        try copy.fill(from: source)
        // Its close gives the files the access of the directory.
        try FileAccess(of: location)?.apply(to: path)
        try copy.close()
        try AtomicFile.syncDirectory(of: path)
      } catch {
        try? copy.close()
        try? FileTree.remove(path)
        throw error
      }
    }
  }

  private func fill(from source: FlatTransaction) throws {
    let lower = FlatKey.prefix(0)
    let iterator = try source.base.iterator(
      from: lower, to: FlatKey.prefix(min(FlatKey.maximumNumber, source.catalog.lastNumber + 1)))
    defer { iterator.close() }
    var isAtStart = true
    try base.fill {
      while try isAtStart ? lower.withUnsafeBytes({ try iterator.seek($0) }) : iterator.next() {
        isAtStart = false
        let (key, value) = try iterator.entry()
        guard let number = key.number(UInt32.self) else { continue }
        let isDropped =
          number == 0 ? key.ownKey.first == UInt8(ascii: "d") : source.catalog.names[Int(number)] == nil
        if !isDropped { return (key, value) }
      }
      return nil
    }
  }

  package var compactsInPlace: Bool { base.compactsInPlace }

  package func compact() throws {
    try using {
      guard !isReadOnly else {
        throw StorageError(.readOnly, "the engine is open for reading", path: location)
      }
      guard base.compactsInPlace else {
        throw StorageError(
          .unsupported, "the engine \(name) can't compact in place; replace the directory by a backup",
          path: location)
      }
      try base.compact()
    }
  }

  /// The library's checks, and the counts of all keyspaces against their entries.
  package func checkIntegrity() throws -> [String] {
    try using {
      var faults = try base.checkFiles()
      do {
        try read { transaction in
          for (name, keyspace) in try transaction.keyspaces() {
            let said = try transaction.count(of: keyspace)
            var found = 0
            try transaction.scan(keyspace) { _, _ in
              found += 1
              return true
            }
            if found != said {
              faults.append("the keyspace \(name) has \(found) entries, but its count says \(said)")
            }
          }
        }
      } catch let error as StorageError where error.code == .damaged { faults.append("\(error)") }
      return faults
    }
  }

  // MARK: Closing

  package func close() throws {
    guard !isForked else { return }
    try queue.exclusively {
      try life.withLock { life in
        guard !life.isClosed else { return }
        guard life.readers == 0, life.users == 0 else {
          throw StorageError(.inUse, "\(life.readers) snapshots are open", path: location)
        }
        life.isClosed = true
        defer { directory.unlock() }
        let sequence = base.sequence
        // A number that a loss of power takes back would be taken for damage.
        if try base.close() { try directory.noteClosed(sequence) }
        if !isReadOnly { try directory.alignAccess() }
      }
    }
  }

  /// Runs `body` while the library can't be closed or opened anew.
  func using<Result>(_ body: () throws -> Result) throws -> Result {
    try life.withLock { life in
      try checkOpen(life)
      if base.isUnreadable || life.isStale { try renew(&life) }
      life.users += 1
    }
    defer { life.withLock { $0.users -= 1 } }
    return try body()
  }

  // MARK: Checks

  var isForked: Bool { ForkCount.now != forks }

  var forked: StorageError {
    StorageError(
      .closed, "the engine \(name) can't be used in a forked child of the process that opened it",
      path: location)
  }

  private func checkOpen(_ life: Life) throws {
    if life.isClosed { throw StorageError(.closed, "the engine is closed", path: location) }
    if isForked { throw forked }
  }

  static func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError {
    StorageError(.noSuchKeyspace, "there is no keyspace with number \(keyspace.number)")
  }

  @inline(__always)
  static func check(_ key: RawSpan, in keyspace: Keyspace) throws {
    let isSound =
      keyspace.shape == .sequences
      ? key.byteCount == 8 && key.withUnsafeBytes { $0[0] < 0x80 }
      : 1...StorageLimits.maximumKeyBytes ~= key.byteCount
    guard isSound else {
      throw StorageError(
        .invalidKey, "a keyspace of \(keyspace.shape) can't have a key of \(key.byteCount) bytes")
    }
  }
}
