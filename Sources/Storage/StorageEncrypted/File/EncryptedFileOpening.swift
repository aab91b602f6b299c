import CLMDB
import Encryption
import Storage
import StorageLMDB

/// The steps that find or create the records of a file and prove the key.
struct EncryptedFileOpening {
  let environment: Environment
  let dataKey: SecretBytes
  let nodePages: Int
  let options: EngineOptions

  func run() throws -> EncryptedFile {
    if let file = try PageFile.withPinnedMeta({ try find() }) { return file }
    if options.isReadOnly {
      throw environment.error(.notADatabase, "the creation of the file was never finished")
    }
    try make()
    guard let file = try PageFile.withPinnedMeta({ try find() }) else {
      throw environment.error(.damaged, "the records were created but can't be found")
    }
    return file
  }

  /// Reads the header and the root in one snapshot. Nothing has checked the pages on the way to them, so each
  /// is checked before LMDB follows it. Returns nil if the file was never finished being made.
  private func find() throws -> EncryptedFile? {
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    guard let records = try snapshot.keyspace(named: RecordFormat.databaseName),
      let database = environment.knownHandle(RecordFormat.databaseName)
    else {
      guard snapshot.isEmptyFromTheStart else {
        throw environment.error(.notEncrypted, "a key was given, and the file isn't encrypted")
      }
      return nil
    }
    let key = RecordFormat.key(of: RecordFormat.headerNumber)
    guard
      let path = try environment.searchPathCheck(
        snapshot.transaction, databaseNamed: RecordFormat.databaseName)
    else { throw environment.error(.damaged, "the encrypted file has no records") }
    try path.check(key)
    let bytes = try snapshot.bytes(key, in: records)
    guard let bytes else { throw environment.error(.damaged, "the encrypted file has no header") }
    let header = try FileHeaderRecord(bytes, dataKey: dataKey, path: environment.path)
    let file = try EncryptedFile(
      environment, header, records, database, dataKey, cacheBytes: options.cacheBytes)
    try file.checkRoot(snapshot, path)
    return file
  }

  /// Writes the header and the root in one transaction, unless another process has written them.
  private func make() throws {
    let transaction = try environment.beginWrite()
    do {
      if try transaction.keyspace(named: RecordFormat.databaseName) == nil {
        let records = try transaction.makeKeyspace(RecordFormat.databaseName, shape: .sequences)
        let header = try FileHeaderRecord(nodePages: nodePages)
        let bytes = try header.bytes(dataKey: dataKey)
        try transaction.put(RecordFormat.key(of: RecordFormat.headerNumber), bytes, in: records)
        let cipher = RecordCipher(try SessionKeys(dataKey: dataKey, fileID: header.fileID))
        let place = try transaction.reserve(RecordFormat.rootNumber, RootRecord.byteCount, in: records)
        try RootRecord.write(.empty, list: [], to: place, cipher, Sealer())
      }
    } catch {
      transaction.bodyEnded()
      environment.abort(transaction)
      throw error
    }
    transaction.bodyEnded()
    try environment.commit(transaction)
  }
}
