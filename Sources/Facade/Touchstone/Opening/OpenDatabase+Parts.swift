import Blobs
import Encryption
import Storage

// The parts of a database in a directory, for opens and for what rewrites databases.

extension OpenDatabase {
  /// The data key of an encrypted database; nil for a plain one.
  static func unlock(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ key: UserKey?
  ) throws -> SecretBytes? {
    switch (directory.keyPath(description), key) {
    case (nil, nil): return nil
    case (nil, _?):
      throw DatabaseError(
        .notEncrypted, "a key was given, but the database isn't encrypted", path: directory.path)
    case (_?, nil):
      throw DatabaseError(
        .keyRequired, "the database is encrypted, but no key was given", path: directory.path)
    case (let keyPath?, let key?):
      do { return try KeyFile.open(at: keyPath, key: key) } catch let error as EncryptionError {
        switch error.code {
        case .wrongKey: throw DatabaseError(.wrongKey, error.message, path: directory.path)
        case .unsupportedVersion:
          throw DatabaseError(.unsupportedVersion, error.message, path: keyPath)
        default: throw DatabaseError(.damaged, error.message, path: keyPath)
        }
      }
    }
  }

  static func openEngine(
    _ type: EngineType, _ path: String, _ creation: FileCreation, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions, isBulkLoad: Bool = false, access: FileAccess? = nil
  ) throws -> any StorageEngine {
    func open(_ key: [UInt8]?) throws -> any StorageEngine {
      var engineOptions = EngineOptions(
        creation: creation, isReadOnly: options.isReadOnly, durability: options.durability, key: key,
        cacheBytes: options.cacheBytes, libraryPath: options.libraryPath, isBulkLoad: isBulkLoad,
        compression: options.compression)
      engineOptions.access = access
      return try type.open(path, engineOptions)
    }
    guard let dataKey else { return try open(nil) }
    do { return try dataKey.withArray { try open($0) } } catch let error as StorageError
      where error.code == .wrongKey
    {
      // The data key matches the key file, so the data itself is damaged.
      throw DatabaseError(
        .damaged, "the data can't be read with the data key of the database: \(error)", path: path)
    }
  }

  static func blobStore(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions
  ) throws -> BlobStore {
    try BlobStore(
      directory: directory.blobsPath(description), dataKey: dataKey, isReadOnly: options.isReadOnly,
      durability: options.durability, newAccess: DatabaseAccess.ofBlobs(directory, description))
  }
}
