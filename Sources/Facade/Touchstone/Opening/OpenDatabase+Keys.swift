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
        path: path)
    }
    guard !store.isInBatch else {
      throw StorageError(.nestedWrite, "the key can't be changed inside a batch", path: path)
    }
    // Nothing replaces files meanwhile, in this process or in another one.
    try maintenance.withLock { _ in
      guard OpenDatabase.paths.withLock(path, { _ in opens > 0 }) else {
        throw DatabaseError(.closed, "the database is closed", path: path)
      }
      try home.changeKey(of: dataKey, to: newKey, from: key, stretching)
    }
    Log.write(.info, .database, path, "changed the key")
  }
}
