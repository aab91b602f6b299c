import Documents
import Encryption
import Storage

/// What is beside the entries of an open database, and how the entries are kept: in a directory or on a server. It holds the
/// lock that every open shares.
///
/// May be used from any thread.
protocol DatabaseHome: AnyObject, Sendable {
  /// Whether it is still there. Closing a database in memory removes its directory.
  var isThere: Bool { get }
  /// The path of the engine's file, or the location without passwords.
  var dataPath: String { get }
  /// The size of the engine's file in bytes; 0 if it can't be asked for.
  var dataBytes: Int { get }

  /// The data key of an encrypted database; nil for a plain one. Throws `wrongKey`, `keyRequired` and `notEncrypted`.
  func unlock(_ key: UserKey?) throws -> SecretBytes?
  /// Opens the engine of the database once more.
  func openEngine(_ dataKey: SecretBytes?, _ options: DatabaseOptions) throws -> any StorageEngine
  /// Called before a database that was opened for reading only is opened for writing.
  func prepareForWriting() throws
  /// Notices the commits of other processes.
  func makeWatch(_ store: DocumentStore) -> ChangeWatch

  // MARK: The lock

  /// Takes the lock alone, and then still shares it. Throws `inUse` if another process has the database open.
  func takeAlone() throws
  /// Shares the lock after it was taken alone.
  func shareAgain()
  /// Gives up the lock. It can't be taken again.
  func release()

  // MARK: Upkeep

  /// Runs `body`, work in the background, unless another process runs such a body for this database and nothing is gained by
  /// both. Returns whether it ran.
  func inTurn(_ body: () throws -> Void) throws -> Bool
  /// The turn to do work that lasts, which isn't taken yet. `purpose` is a word for the work.
  func workTurn(for purpose: String) -> any WorkTurn
  /// Whether a compaction needs the lock alone, because it replaces files.
  func compactsAlone(_ engine: any StorageEngine) throws -> Bool
  /// Returns unused space to the file system.
  func compact(_ open: OpenDatabase) throws
  /// Syncs everything committed so far, unless durability is `none`. Otherwise a power loss could restore a
  /// document whose blob has been removed.
  func sync(_ files: HeldFiles, _ durability: Durability) throws
  /// Wraps the data key under another user's key. `key` is the present one; nil if the caller needn't prove that it has it.
  func changeKey(
    of dataKey: SecretBytes, to newKey: UserKey, from key: UserKey?, _ stretching: PassphraseStretching)
    throws
  /// The search for plaintext in the files of an encrypted database. Nil if it has no files.
  func plaintextCheck(_ files: HeldFiles, onFile: @escaping (FileEntropy) -> Void) throws -> PlaintextCheck?

  // MARK: Removing

  /// Throws an error if this user can't remove the database.
  func checkRemovable() throws
  /// Removes the database, whose engine is closed. The lock is held alone.
  func remove() throws
}

/// A database that was just opened or made.
typealias OpenedDatabase = (home: any DatabaseHome, store: DocumentStore, dataKey: SecretBytes?)
