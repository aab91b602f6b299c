import CLMDB
import Glibc
import Storage

// Snapshots of processes that may not write LMDB's lock file, and how writers know of them.
//
// Such a process can't register in LMDB's table of readers. It locks one byte of the data file instead, for
// which the right to read is enough: the byte `base` + the number of the snapshot's transaction. A writer
// looks for these locks when a write transaction begins, and has LMDB keep the pages of the oldest one
// (`MarkedReaders`).
//
// A mark is sound if no commit came between taking it and looking again for the newest commit. The writer
// that commits next may have looked before the mark. It reuses only pages that were free in the snapshot.
// The writer after that one sees the mark.

private enum MarkedBytes {
  /// Beyond every byte of a file. LMDB's transaction numbers are below 2^48.
  static let base = 1 << 60
}

/// The marks of this process.
final class SnapshotMarks: Sendable {
  /// The maximum number of commits of others that may come while a snapshot begins.
  private static let attempts = 10_000

  private let descriptor: Int32
  private let path: String
  /// The number of snapshots by transaction.
  private let counts = Lock<[Int: Int]>([:])

  /// `descriptor` is LMDB's own. Closing the environment ends all marks.
  init(_ descriptor: Int32, path: String) {
    self.descriptor = descriptor
    self.path = path
  }

  /// Marks the snapshot that `begin` takes, and returns its transaction. `newest` returns the number of the
  /// last commit. `begin` takes a snapshot and returns its transaction. `undo` gives up one that came too
  /// late.
  func mark(newest: () -> Int, begin: () throws -> Int, undo: () -> Void) throws -> Int {
    for _ in 0..<Self.attempts {
      let transaction = newest()
      try add(transaction)
      let begun: Int
      do { begun = try begin() } catch {
        remove(transaction)
        throw error
      }
      if begun == transaction, newest() == transaction { return transaction }
      undo()
      remove(transaction)
    }
    throw StorageError(
      .busy, "other processes commit faster than a snapshot can begin; try again", path: path)
  }

  func remove(_ transaction: Int) {
    counts.withLock { counts in
      guard let count = counts[transaction] else { return }
      counts[transaction] = count > 1 ? count - 1 : nil
      if count == 1 { OpenFileLock.release(descriptor, from: MarkedBytes.base + transaction, count: 1) }
    }
  }

  private func add(_ transaction: Int) throws {
    try counts.withLock { counts in
      if let count = counts[transaction] {
        counts[transaction] = count + 1
        return
      }
      let failure = OpenFileLock.share(descriptor, from: MarkedBytes.base + transaction, count: 1)
      guard failure == 0 else {
        throw StorageError(
          .permissionDenied,
          "this process may not write the lock file, and the file system has no locks for readers. Give it "
            + "the right to write \(path)-lock (a group, for example), or open a copy",
          path: path, engineCode: Int(failure), engineMessage: String(cString: strerror(failure)))
      }
      counts[transaction] = 1
    }
  }
}

/// What a writer does for marked snapshots of other processes. Only the thread of the write transaction uses it.
///
/// While a write transaction runs, a reader's slot of this process stands for the oldest marked snapshot. LMDB
/// registers new readers only at the newest commit. So the number of the transaction is written into the slot
/// afterwards. LMDB's own writer, in this process, reads it there.
final class MarkedReaders {
  // The lock file of LMDB 0.9 on a 64-bit machine:
  //   file := magic:u32=0xBEEFC0DE format:u32 mutex txnid:u64 readers:u32 … (64 bytes) mutex … (64 bytes) slot*
  //   slot := txnid:u64 pid:u32 … (64 bytes)
  private static let headerBytes = 128
  private static let slotBytes = 64
  private static let magic: UInt32 = 0xBEEF_C0DE

  private let environment: OpaquePointer
  private let path: String
  private let data: Int32
  private var lockFile: Int32 = -1
  private var table: UnsafeMutableRawBufferPointer?
  private var transaction: OpaquePointer?
  /// This process's slot for the snapshots of others.
  private var slot: UnsafeMutableRawPointer?
  private var isHolding = false

  init(_ environment: OpaquePointer, _ data: Int32, path: String) {
    self.environment = environment
    self.data = data
    self.path = path
  }

  /// Keeps the pages of the oldest marked snapshot until `release`. Call it when a write transaction has begun and
  /// has taken no page yet.
  @inline(__always)
  func protect() throws {
    if let found = try OpenFileLock.holder(data, from: MarkedBytes.base, count: 0, path: path) {
      try protect(found)
    }
  }

  @inline(never)
  private func protect(_ found: Int) throws {
    var oldest = max(found, MarkedBytes.base)
    while oldest > MarkedBytes.base,
      let earlier = try OpenFileLock.holder(
        data, from: MarkedBytes.base, count: oldest - MarkedBytes.base, path: path)
    {
      oldest = max(earlier, MarkedBytes.base)
    }
    if slot == nil { slot = try findSlot() } else { try begin() }
    isHolding = true
    slot?.storeBytes(of: UInt64(oldest - MarkedBytes.base), as: UInt64.self)
  }

  /// Call it when the write transaction has ended.
  @inline(__always)
  func release() {
    guard isHolding else { return }
    isHolding = false
    if let transaction { mdb_txn_reset(transaction) }
  }

  /// Call it before the environment closes.
  func endTransaction() {
    if let transaction { mdb_txn_abort(transaction) }
    transaction = nil
  }

  /// Call it after the environment has closed: closing a descriptor of the lock file ends LMDB's locks on it.
  func close() {
    if let table { munmap(table.baseAddress, table.count) }
    table = nil
    if lockFile >= 0 { _ = Glibc.close(lockFile) }
    lockFile = -1
  }

  private func begin() throws {
    let result: Int32
    if let transaction {
      result = mdb_txn_renew(transaction)
    } else {
      result = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction)
    }
    if result != 0 { throw StorageError.lmdb(result, "a reader could not be protected", path: path) }
  }

  /// Finds the slot of this object's transaction in the table: it has this process's ID, and follows what the transaction
  /// does. Leaves the transaction begun.
  private func findSlot() throws -> UnsafeMutableRawPointer {
    let table = try map()
    var candidates = Array(
      stride(from: Self.headerBytes, to: table.count - Self.slotBytes + 1, by: Self.slotBytes))
    let process = UInt32(getpid())
    for round in 0..<64 {
      try begin()
      let number = transaction.map { UInt64(mdb_txn_id($0)) }
      candidates = candidates.filter {
        table.load(fromByteOffset: $0 + 8, as: UInt32.self) == process
          && table.load(fromByteOffset: $0, as: UInt64.self) == number
      }
      // Other snapshots of this process begin and end too, but not in step with this one.
      if candidates.count == 1, round >= 3, let base = table.baseAddress { return base + candidates[0] }
      if let transaction { mdb_txn_reset(transaction) }
      candidates = candidates.filter { table.load(fromByteOffset: $0, as: UInt64.self) == .max }
      if candidates.isEmpty { break }
    }
    throw StorageError(
      .busy,
      "a process that may not write \(path)-lock reads the database, and this LMDB can't protect it; write "
        + "when it has ended", path: path)
  }

  private func map() throws -> UnsafeMutableRawBufferPointer {
    if let table { return table }
    if lockFile < 0 { lockFile = open(path + "-lock", O_RDWR | O_CLOEXEC) }
    var status = stat()
    guard lockFile >= 0, fstat(lockFile, &status) == 0, status.st_size >= Self.headerBytes else {
      throw StorageError.lmdb(errno, "the lock file could not be opened", path: path)
    }
    let bytes = Int(status.st_size)
    guard let start = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, lockFile, 0), start != MAP_FAILED
    else { throw StorageError.lmdb(errno, "the lock file could not be mapped", path: path) }
    let table = UnsafeMutableRawBufferPointer(start: start, count: bytes)
    self.table = table
    guard table.load(as: UInt32.self) == Self.magic else {
      throw StorageError(.damaged, "the lock file isn't LMDB's", path: path)
    }
    return table
  }
}
