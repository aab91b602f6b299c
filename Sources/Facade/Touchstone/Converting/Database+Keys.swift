import Encryption
import Logs
import Storage

extension Database {
  /// Changes the key of this open, encrypted database. Other opens, also in other processes, go on: they hold the data
  /// key, which stays the same. Every open afterwards needs `newKey`, in this process too.
  ///
  /// ```swift
  /// try notes.changeKey(.passphrase("the new one"), key: .passphrase("the old one"))
  /// ```
  ///
  /// It only wraps the data key again, in one small file that is replaced in one step, as `rekey` does. After a crash
  /// either the old key or the new one opens the database. If several threads or processes change the key, one does
  /// so after the other.
  ///
  /// - Parameters:
  ///   - newKey: the key that opens the database from now on.
  ///   - key: the present key, which is checked. Nil doesn't check it: whoever has the open database may change it.
  ///   - stretching: how a passphrase is stretched.
  ///
  /// Throws `wrongKey` if `key` isn't the present one, and `readOnly`. Throws `notEncrypted` for a plain database:
  /// close it and use `encrypt`. The data key of an open database can't be changed: close it and use `rotateKey`.
  /// Throws `nestedWrite` inside a batch.
  public func changeKey(
    _ newKey: UserKey, key: UserKey? = nil, stretching: PassphraseStretching = .standard
  ) throws {
    _ = try store
    guard !isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: path)
    }
    try open.changeKey(newKey, from: key, stretching)
  }

  /// Changes the key of an encrypted database: `newKey` replaces `key`.
  ///
  /// This only re-wraps the data key, in one small file that is replaced in one step. The time doesn't depend
  /// on the size of the database. The data key stays the same, so a leaked data key still reads the database:
  /// use `rotateKey` then.
  ///
  /// `stretching` says how the passphrase in `newKey` is stretched. To strengthen an existing passphrase, pass
  /// the same key and a stronger stretching.
  ///
  /// The database must not be open; for an open one there is `changeKey`. Throws `inUse` if it is, `wrongKey` if `key` is wrong, and `notEncrypted` for a plain
  /// database.
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
    Log.write(.info, .database, closed.directory.path, "changed the key")
  }

  /// Gives an encrypted database a new data key and rewrites everything with it, including blobs.
  ///
  /// `newKey` opens it afterwards; nil keeps the same key. It is crash-safe and verified, like `convert`.
  /// Returns which blobs are missing that documents name. Throws as `rekey` does.
  @discardableResult
  public static func rotateKey(
    _ path: String, in directory: String? = nil, key: UserKey, newKey: UserKey? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key != nil else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: closed.directory.path)
    }
    let type = try Engines.type(EngineName(rawValue: closed.description.engine))
    let recipe = try DatabaseRecipe(
      type, isEncrypted: true, key: key, newKey: newKey ?? key, renewsDataKey: true,
      path: closed.directory.path)
    return try closed.rewrite(recipe, key: key, progress: progress)
  }

  /// Encrypts a plain database, including its blobs, with an engine that can encrypt.
  ///
  /// Afterwards no plain file is left in the directory. The disk may still hold data of removed files.
  /// It is crash-safe and verified, like `convert`.
  ///
  /// `engine` is the new engine. Nil means the encrypting engine of the same kind: SQLCipher for SQLite,
  /// `lmdb-encrypted` for LMDB.
  ///
  /// Returns which blobs are missing that documents name.
  ///
  /// Throws `alreadyEncrypted` if it is encrypted already, `inUse` if it is open, and `notEncrypted` if the
  /// engine can't encrypt or there is no encrypting engine of the same kind.
  @discardableResult
  public static func encrypt(
    _ path: String, in directory: String? = nil, key: UserKey, engine: EngineName? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key == nil else {
      throw DatabaseError(
        .alreadyEncrypted, "the database is already encrypted; to change its key, use rekey",
        path: closed.directory.path)
    }
    let old = EngineName(rawValue: closed.description.engine)
    guard let name = engine ?? Engines.encrypting(old) else {
      throw DatabaseError(
        .notEncrypted,
        "the engine \(old) can't encrypt; choose another engine, such as \(EngineName.sqlcipher)",
        path: closed.directory.path)
    }
    let recipe = try DatabaseRecipe(
      try Engines.type(name, encrypted: true), isEncrypted: false, key: nil, newKey: key, renewsDataKey: true,
      path: closed.directory.path)
    return try closed.rewrite(recipe, key: nil, progress: progress)
  }

  /// Decrypts a database, including its blobs. It is crash-safe and verified, like `convert`.
  ///
  /// `engine` is the new engine. Nil means the plain engine of the same kind, such as SQLite for SQLCipher.
  ///
  /// Returns which blobs are missing that documents name.
  ///
  /// Throws `notEncrypted` for a plain database, `keyRequired` if `engine` always encrypts, and otherwise as
  /// `rekey` does.
  @discardableResult
  public static func decrypt(
    _ path: String, in directory: String? = nil, key: UserKey, engine: EngineName? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let closed = try ClosedDatabase(try DatabaseDirectory(path, in: directory))
    guard closed.description.key != nil else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: closed.directory.path)
    }
    let type = try Engines.type(engine ?? Engines.plain(EngineName(rawValue: closed.description.engine)))
    guard !type.encrypts else {
      throw DatabaseError(
        .keyRequired, "the engine \(type.name) always encrypts; choose another engine",
        path: closed.directory.path)
    }
    let recipe = try DatabaseRecipe(
      type, isEncrypted: true, key: key, newKey: nil, renewsDataKey: false, path: closed.directory.path)
    return try closed.rewrite(recipe, key: key, progress: progress)
  }
}
