import Encryption
import Logs
import Storage

extension OpenDatabase {
  /// Wraps the data key under another user's key. `key` is the present one; nil if the caller needn't prove that it
  /// has it.
  func changeKey(_ newKey: UserKey, from key: UserKey?, _ stretching: PassphraseStretching) throws {
    guard let dataKey = heldDataKey else {
      throw DatabaseError(
        .notEncrypted,
        "the database isn't encrypted, so it has no key to change; close it and use Database.encrypt",
        path: directory.path)
    }
    guard !store.isInBatch else {
      throw StorageError(.nestedWrite, "the key can't be changed inside a batch", path: directory.path)
    }
    // Nothing replaces files meanwhile, in this process or in another one.
    try maintenance.withLock { _ in
      guard OpenDatabase.paths.withLock(directory.path, { _ in opens > 0 }) else {
        throw DatabaseError(.closed, "the database is closed", path: directory.path)
      }
      try lock.withRight {
        let description = description.withLock { $0 }
        if let key {
          guard try OpenDatabase.unlock(directory, description, key) == dataKey else {
            throw DatabaseError(
              .damaged, "the key file holds another data key than that of the open database",
              path: directory.path)
          }
        }
        guard let path = directory.keyPath(description) else {
          throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: directory.path)
        }
        try KeyFile.write(dataKey, to: path, key: newKey, stretching: stretching, replacement: .allowed)
      }
    }
    Log.write(.info, .database, directory.path, "changed the key")
  }
}
