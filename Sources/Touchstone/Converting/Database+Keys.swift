import Encryption
import Storage

extension Database {
  /// Changes the key of an encrypted database: `newKey` opens it from now on, and `key` doesn't.
  ///
  /// The data key is wrapped anew, in one small file that is replaced in one step, at any size of the database. Whoever has
  /// learnt the data key can still read it: that is what `rotateKey` is for.
  ///
  /// - Parameter stretching: how a new passphrase is stretched: what a later release does by default, or more. With
  ///   the same key as before it is raised.
  ///
  /// Throws `inUse` while somebody has the database open, `wrongKey`, and `notEncrypted` for a plain database.
  public static func rekey(
    _ path: String, in directory: String? = nil, key: UserKey, newKey: UserKey,
    stretching: PassphraseStretching = .standard
  ) throws {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard let dataKey = try OpenDatabase.unlock(closed.directory, closed.description, key),
      let keyPath = closed.directory.keyPath(closed.description)
    else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: closed.directory.path)
    }
    try KeyFile.write(dataKey, to: keyPath, key: newKey, stretching: stretching, replacement: .allowed)
  }

  /// Gives an encrypted database a new data key, and writes everything anew with it, blobs too.
  ///
  /// `newKey` opens it then; nil for the same key as before. Crash-safe and verified as `convert` is. Throws as `rekey`
  /// does.
  public static func rotateKey(
    _ path: String, in directory: String? = nil, key: UserKey, newKey: UserKey? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key != nil else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: closed.directory.path)
    }
    let type = try Engines.type(EngineName(rawValue: closed.description.engine))
    let recipe = try DatabaseRecipe(
      type, isEncrypted: true, key: key, newKey: newKey ?? key, renewsDataKey: true,
      path: closed.directory.path)
    try closed.rewrite(recipe, key: key, progress: progress)
  }

  /// Encrypts a plain database, blobs too, with an engine that can.
  ///
  /// Afterwards no plain file is left in its directory. (What the disk keeps of removed files is out of reach.)
  /// Crash-safe and verified as `convert` is.
  ///
  /// - Parameter engine: the engine afterwards; nil for the encrypting one of the same kind: SQLCipher for SQLite,
  ///   LMDB with a key for LMDB.
  ///
  /// Throws `alreadyEncrypted`, `inUse`, and `notEncrypted` when there is no such engine.
  public static func encrypt(
    _ path: String, in directory: String? = nil, key: UserKey, engine: EngineName? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key == nil else {
      throw DatabaseError(
        .alreadyEncrypted, "the database is encrypted already: its key can be changed",
        path: closed.directory.path)
    }
    let old = EngineName(rawValue: closed.description.engine)
    guard let name = engine ?? Engines.encrypting(old) else {
      throw DatabaseError(
        .notEncrypted, "the engine \(old) can't encrypt: choose another, as \(EngineName.sqlcipher)",
        path: closed.directory.path)
    }
    let recipe = try DatabaseRecipe(
      try Engines.type(name, encrypted: true), isEncrypted: false, key: nil, newKey: key, renewsDataKey: true,
      path: closed.directory.path)
    try closed.rewrite(recipe, key: nil, progress: progress)
  }

  /// Decrypts a database, blobs too. Crash-safe and verified as `convert` is.
  ///
  /// - Parameter engine: the engine afterwards; nil for the plain one of the same kind: SQLite for SQLCipher.
  ///
  /// Throws `notEncrypted` for a plain database, and as `rekey` does.
  public static func decrypt(
    _ path: String, in directory: String? = nil, key: UserKey, engine: EngineName? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key != nil else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: closed.directory.path)
    }
    let type = try Engines.type(engine ?? Engines.plain(EngineName(rawValue: closed.description.engine)))
    guard !type.encrypts else {
      throw DatabaseError(
        .keyRequired, "the engine \(type.name) always encrypts: choose another", path: closed.directory.path)
    }
    let recipe = try DatabaseRecipe(
      type, isEncrypted: true, key: key, newKey: nil, renewsDataKey: false, path: closed.directory.path)
    try closed.rewrite(recipe, key: key, progress: progress)
  }
}
