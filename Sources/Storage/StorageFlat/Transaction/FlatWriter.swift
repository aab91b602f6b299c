import Bytes
import Storage

/// The write transaction of a `FlatEngine`: one body's part of it.
final class FlatWriter: FlatTransaction, WriteTransaction {
  /// What the members of a group pass on.
  struct State {
    var catalog: FlatCatalog
    /// Whether keyspaces were made or dropped.
    var changesKeyspaces = false
    var extents: FlatExtents
  }

  private let write: any FlatWrite
  private var changesKeyspaces: Bool
  private var extents: FlatExtents
  /// The failure after which the transaction can't be committed.
  private(set) var breakage: StorageError? { didSet { isBroken = true } }
  /// Whether there was one: a copy of an error for each write takes time.
  private var isBroken = false

  init(_ engine: FlatEngine, _ write: any FlatWrite, _ state: State) {
    self.write = write
    changesKeyspaces = state.changesKeyspaces
    extents = state.extents
    super.init(engine, write, state.catalog)
  }

  var state: State {
    State(catalog: catalog, changesKeyspaces: changesKeyspaces, extents: extents)
  }

  var lineage: UInt64? { engine.queue.lineage }
  var turn: UInt64? { engine.queue.turn }

  /// Does nothing. The engine ends the transaction.
  override func end() {}

  /// The write group ends what is below.
  override func finishBase() {}

  private func beginWrite() throws {
    try checkOpen()
    guard lent == 0 else {
      throw StorageError(.bytesAreLent, "a write inside a closure that bytes of its transaction are lent to")
    }
    if isBroken, let breakage { throw breakage }
  }

  /// Calls the library. A failure breaks the transaction.
  private func changing<Result>(_ body: () throws -> Result) throws -> Result {
    writes += 1
    do { return try body() } catch let error as StorageError {
      breakage = error
      throw error
    }
  }

  override func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    try check(keyspace)
    return .exact(try count(keyspace.number))
  }

  private func count(_ number: Int) throws -> Int {
    if let count = extents.count(of: number) { return count }
    let count = try storedCount(number)
    extents.noteCount(count, of: number)
    return count
  }

  private func change(_ number: Int, by difference: Int) throws {
    extents.setCount(max(0, try count(number) + difference), of: number)
  }

  // MARK: Keyspaces

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try beginWrite()
    try KeyspaceName.check(name, path: engine.location)
    if let keyspace = catalog.keyspaces[name] {
      guard keyspace.shape == shape else {
        throw StorageError(
          .shapeMismatch, "the keyspace \"\(name)\" has the shape \(keyspace.shape), not \(shape)",
          path: engine.location)
      }
      return keyspace
    }
    guard catalog.keyspaces.count < StorageLimits.maximumKeyspaces,
      catalog.lastNumber < FlatKey.maximumNumber
    else {
      throw StorageError(
        .tooManyKeyspaces, "there are \(catalog.keyspaces.count) keyspaces, which is the limit",
        path: engine.location)
    }
    let keyspace = catalog.add(name, shape)
    changesKeyspaces = true
    try set(FlatKey.keyspace(name), FlatKey.prefix(keyspace.number) + [shape.rawValue])
    try set(FlatKey.lastNumber, FlatKey.prefix(keyspace.number))
    extents.setCount(0, of: keyspace.number)
    return keyspace
  }

  /// The entries go after the commit: older snapshots still see them.
  func dropKeyspace(_ keyspace: Keyspace) throws {
    try beginWrite()
    try check(keyspace)
    guard let name = catalog.remove(keyspace.number) else { return }
    changesKeyspaces = true
    extents.forget(keyspace.number)
    forgetChecks()
    try changing {
      _ = try FlatKey.keyspace(name).withUnsafeBytes { try write.delete($0) }
      _ = try FlatKey.count(keyspace.number).withUnsafeBytes { try write.delete($0) }
    }
    try set(FlatKey.dropped(keyspace.number), [])
  }

  private func set(_ key: [UInt8], _ value: [UInt8]) throws {
    try changing {
      try key.withUnsafeBytes { key in try value.withUnsafeBytes { try write.set(key, $0) } }
    }
  }

  /// Writes the records of the counts, before a commit.
  func writeCounts() throws {
    for (number, count) in extents.takeChangedCounts() {
      try set(FlatKey.count(number), withUnsafeBytes(of: UInt64(count).bigEndian) { [UInt8]($0) })
    }
  }

  // MARK: Entries

  private func checkEntry(_ key: RawSpan, _ value: RawSpan, _ keyspace: Keyspace) throws {
    try beginWrite()
    try FlatEngine.check(key, in: keyspace)
    guard value.byteCount <= StorageLimits.maximumValueBytes else {
      throw StorageError(
        .valueTooLarge, "a value of \(value.byteCount) bytes is over the limit", path: engine.location)
    }
    try check(keyspace)
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try checkEntry(key, value, keyspace)
    let isNew = try changing {
      try FlatKey.with(key, keyspace.number) { key in
        try value.withUnsafeBytes { value in
          try addIfGreatest(key, value, keyspace.number) || write.put(key, value)
        }
      }
    }
    if isNew { try change(keyspace.number, by: 1) }
  }

  /// Adds an entry whose key is greater than all others, and so is new: nothing has to look for it. Returns false, and does
  /// nothing, if the key isn't known to be.
  private func addIfGreatest(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ number: Int
  ) throws -> Bool {
    if extents.shouldFindGreatest(of: number) { try findGreatest(number) }
    guard extents.isGreatest(key, in: number) else { return false }
    try write.add(key, value)
    extents.noteGreatest(key, in: number)
    return true
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try checkEntry(key, value, keyspace)
    let isNew = try changing {
      try FlatKey.with(key, keyspace.number) { key in
        try value.withUnsafeBytes { value in
          try addIfGreatest(key, value, keyspace.number) || write.insert(key, value)
        }
      }
    }
    if isNew { try change(keyspace.number, by: 1) }
    return isNew
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try checkEntry(key, key, keyspace)
    let wasThere = try changing {
      try FlatKey.with(key, keyspace.number) { key in
        extents.noteDeletion(of: key, in: keyspace.number)
        return try write.delete(key)
      }
    }
    if wasThere { try change(keyspace.number, by: -1) }
    return wasThere
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite()
    try check(keyspace)
    extents.noteDeletions(in: keyspace.number)
    let bounds = FlatKey.bounds(range, keyspace.number)
    var lower = bounds.lower
    var removed = 0
    while FlatKey.isLess(lower, bounds.upper) {
      // An iterator doesn't survive a write, so keys are collected first.
      var keys = KeyList()
      try collectKeys(from: lower, to: bounds.upper, &keys)
      guard keys.count > 0 else { break }
      try changing {
        for index in 0..<keys.count { try keys[index].withUnsafeBytes { try write.remove($0) } }
      }
      removed += keys.count
      lower = [UInt8](copying: keys[keys.count - 1]) + [0]
    }
    if removed > 0 { try change(keyspace.number, by: -removed) }
    return removed
  }

  private func collectKeys(from lower: [UInt8], to upper: [UInt8], _ keys: inout KeyList) throws {
    let iterator = try write.iterator(from: lower, to: upper)
    defer { iterator.close() }
    var isOnEntry = try lower.withUnsafeBytes { try iterator.seek($0) }
    while isOnEntry, keys.count < 1_000 {
      keys.append(try iterator.entry().key.bytes)
      isOnEntry = try iterator.next()
    }
  }

  /// Remembers the greatest key, so that only the first append looks for it.
  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try checkEntry(key, value, keyspace)
    let number = keyspace.number
    try FlatKey.with(key, number) { key in
      if !extents.isGreatest(key, in: number), !extents.knowsGreatest(of: number) {
        try findGreatest(number)
      }
      guard extents.isGreatest(key, in: number) else {
        throw StorageError(
          .outOfOrder, "an appended key isn't greater than all others", path: engine.location)
      }
      try changing { try value.withUnsafeBytes { try write.set(key, $0) } }
      extents.noteGreatest(key, in: number)
    }
    try change(number, by: 1)
  }

  /// Looks for the greatest key of a keyspace; of an empty one it is the prefix of its keys, which is less than any.
  private func findGreatest(_ number: Int) throws {
    let (lower, upper) = FlatKey.bounds(.all, number)
    let iterator = try write.iterator(from: lower, to: upper)
    defer { iterator.close() }
    guard try upper.withUnsafeBytes({ try iterator.seek(before: $0) }) else {
      return lower.withUnsafeBytes { extents.noteGreatest($0, in: number) }
    }
    extents.noteGreatest(try iterator.entry().key, in: number)
  }
}

/// The write group with which `GroupCommit` runs the writes of a `FlatEngine`.
final class FlatWriteGroup: WriteGroup {
  private let engine: FlatEngine
  private var write: (any FlatWrite)?
  private var writer: FlatWriter?
  private var beforeMember: FlatWriter.State?
  private var failure: StorageError?

  init(_ engine: FlatEngine) { self.engine = engine }

  var isBroken: Bool { breakage != nil }
  var breakage: StorageError? { failure ?? writer?.breakage }

  func begin() throws -> any WriteTransaction {
    let (write, state) = try engine.beginWrite()
    self.write = write
    failure = nil
    let writer = FlatWriter(engine, write, state)
    self.writer = writer
    return writer
  }

  func commit() throws {
    guard let write, let writer else { return }
    do { try writer.writeCounts() } catch {
      abort()
      throw error
    }
    let state = writer.state
    writer.close()
    self.writer = nil
    self.write = nil
    try engine.commit(write, state)
  }

  func abort() {
    writer?.close()
    writer = nil
    guard let write else { return }
    write.abort()
    self.write = nil
    engine.writeEnded()
  }

  func beginMember() throws -> any WriteTransaction {
    guard let write, let last = writer else {
      throw StorageError(.closed, "the transaction has ended", path: engine.location)
    }
    let state = last.state
    last.close()
    try write.beginPart()
    beforeMember = state
    let next = FlatWriter(engine, write, state)
    writer = next
    return next
  }

  func keepMember() throws {
    writer?.close()
    beforeMember = nil
  }

  func abortMember() {
    guard let write, let beforeMember else { return }
    let breakage = writer?.breakage
    writer?.close()
    do { try write.undoPart() } catch {
      failure =
        error as? StorageError
        ?? StorageError(
          .engineFailure, "a part of a transaction can't be undone: \(error)", path: engine.location)
    }
    failure = failure ?? breakage
    // What follows goes on where the part began.
    let kept = FlatWriter(engine, write, beforeMember)
    kept.close()
    writer = kept
    self.beforeMember = nil
  }
}
