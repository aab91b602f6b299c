import CLMDB
import Encryption
import Glibc
import Storage
import StorageLMDB

/// An open encrypted file: LMDB's environment with its snapshots and locks, the keys, the cache of decrypted
/// nodes, and the state of the last known commit.
final class EncryptedFile: @unchecked Sendable {
  /// The maximum number of resting readers. They keep cipher contexts with keys.
  private static let maximumResting = 32

  let environment: Environment
  let keys: SessionKeys
  let cache: NodeCache
  let cacheBytes: Int
  let nodePages: Int
  /// The plaintext size of a node or a whole chunk, in bytes.
  let payloadBytes: Int
  /// The named database of the records.
  let records: Keyspace
  let database: MDB_dbi
  /// Used only by the writer.
  let sealer = Sealer()
  /// The size of changed nodes, in bytes, from which they are written before the transaction ends. Tests
  /// reduce it.
  var spillBytes = 16 << 20

  private struct Known: @unchecked Sendable {
    var transaction: Int
    var state: FileState
  }
  private let known: Lock<Known>

  private struct Resting: @unchecked Sendable { var readers: [NodeRecordReader] = [] }
  private let resting = Lock(Resting())

  var path: String { environment.path }

  /// Opens or creates the file. `nodePages` applies to a new file.
  ///
  /// The opening lock is held until the key is proved. If this throws, a new file is removed, and no other
  /// process can have opened it meanwhile.
  static func open(
    path: String, options: EngineOptions, mapBytes: Int, nodePages: Int
  ) throws -> EncryptedFile {
    guard let bytes = options.key else {
      throw StorageError(.keyRequired, "the engine encrypts, but no key was given", path: path)
    }
    guard bytes.count == 32 else {
      throw StorageError(.invalidArgument, "a key must have 32 bytes, not \(bytes.count)", path: path)
    }
    let dataKey = SecretBytes(bytes)
    var options = options
    options.key = nil
    return try EnvironmentRegistry.withLock(path, options) { path, lock in
      let environment = try EnvironmentRegistry.open(
        path: path, options: options, mapBytes: mapBytes, lock)
      do {
        let opening = EncryptedFileOpening(
          environment: environment, dataKey: dataKey, nodePages: nodePages, options: options)
        return try opening.run()
      } catch {
        try? environment.close()
        throw error
      }
    }
  }

  init(
    _ environment: Environment, _ header: FileHeaderRecord, _ records: Keyspace, _ database: MDB_dbi,
    _ dataKey: SecretBytes, cacheBytes: Int
  ) throws {
    self.environment = environment
    nodePages = header.nodePages
    payloadBytes = RecordFormat.payloadBytes(pages: header.nodePages)
    self.cacheBytes = cacheBytes
    cache = NodeCache(byteCount: cacheBytes, nodeBytes: payloadBytes)
    keys = try SessionKeys(dataKey: dataKey, fileID: header.fileID)
    self.records = records
    self.database = database
    known = Lock(Known(transaction: -1, state: .empty))
  }

  /// Reads the root, which authenticates the file, and compares it with the existing records. An older root
  /// that was put back doesn't know the newer records. `path` leads to the records in the snapshot.
  func checkRoot(_ snapshot: LMDBReadTransaction, _ path: SearchPathCheck) throws {
    let transaction = snapshot.transaction
    let reader = takeReader()
    defer { giveBack(reader) }
    reader.begin(transaction)
    reader.searchPathCheck = path
    let state = try state(of: transaction, reader)
    let count = try snapshot.count(of: records)
    try path.check(nil)
    let cursor = try snapshot.cursor(in: records, .all)
    let last = try cursor.last { key, _ in key.unsafeLoadUnaligned(as: UInt64.self).byteSwapped }
    guard let last, last < state.nextNumber, !state.table.items.isEmpty || count == 2 else {
      throw error(
        .damaged,
        "the root of the encrypted file is older than its records, so it was replaced or the file is damaged")
    }
  }

  // MARK: Snapshots

  func beginRead(isOwn: Bool = false) throws -> EncryptedReadTransaction {
    let snapshot = isOwn ? try environment.beginOwnRead() : try environment.beginRead()
    let reader = takeReader()
    reader.begin(snapshot.transaction)
    do {
      return EncryptedReadTransaction(
        self, snapshot, reader, try state(of: snapshot.transaction, reader))
    } catch {
      giveBack(reader)
      snapshot.end()
      throw error
    }
  }

  func takeReader() -> NodeRecordReader {
    resting.withLock { $0.readers.popLast() } ?? NodeRecordReader(self)
  }

  func giveBack(_ reader: NodeRecordReader) {
    reader.end()
    resting.withLock { resting in
      if resting.readers.count < Self.maximumResting { resting.readers.append(reader) }
    }
  }

  /// Returns the state of the commit that a transaction of LMDB sees. `reader` reads from that transaction.
  func state(of transaction: OpaquePointer, isWriting: Bool = false, _ reader: NodeRecordReader) throws
    -> FileState
  {
    let number = mdb_txn_id(transaction) - (isWriting ? 1 : 0)
    let state: FileState? = known.withLock { $0.transaction == number ? $0.state : nil }
    if let state { return state }
    let read = try reader.root()
    publish(read, transaction: number)
    return read
  }

  /// Stores the state if it is the newest one.
  func publish(_ state: FileState, transaction: Int) {
    known.withLock { known in
      if transaction > known.transaction { known = Known(transaction: transaction, state: state) }
    }
  }

  /// Drops all decrypted data when the environment is closed.
  func forget() {
    cache.removeAll()
    resting.withLock { $0.readers = [] }
    known.withLock { $0 = Known(transaction: -1, state: .empty) }
  }

  func error(_ code: StorageError.Code, _ message: String) -> StorageError {
    environment.error(code, message)
  }
}
