import CLMDB
import Storage
import StorageLMDB

/// A snapshot of an encrypted file: a snapshot of LMDB and the root that it holds.
final class EncryptedReadTransaction: EncryptedTransaction, ReadTransaction {
  private let snapshot: LMDBReadTransaction
  let state: FileState

  init(_ file: EncryptedFile, _ snapshot: LMDBReadTransaction, _ reader: NodeRecordReader, _ state: FileState)
  {
    self.snapshot = snapshot
    self.state = state
    super.init(file, reader)
  }

  deinit { end() }

  func end() { endSnapshot() }

  override func returned() {
    file.giveBack(reader)
    snapshot.end()
  }

  /// LMDB's transaction of the snapshot.
  var transaction: OpaquePointer { snapshot.transaction }
  var outer: LMDBReadTransaction { snapshot }

  override var table: KeyspaceTable { state.table }

  override func tree(of keyspace: Keyspace) throws -> Tree {
    try checkOpen()
    guard let place = state.table.place(of: keyspace.number) else {
      throw file.environment.noSuchKeyspace(keyspace)
    }
    return state.table[place]
  }
}
