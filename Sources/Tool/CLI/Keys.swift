import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// The sources of a command's keys: a file, an environment variable, or a prompt. A key is never an argument.
struct Keys {
  static let file = Option(
    "key-file", "FILE", "A file with the key of the database: 32 raw bytes, or a line with a passphrase")
  static let newFile = Option(
    "new-key-file", "FILE", "A file with the key of the result: 32 raw bytes, or a line with a passphrase")
  static let variable = "TOUCHSTONE_KEY"
  static let newVariable = "TOUCHSTONE_NEW_KEY"

  private let path: String?
  private let newPath: String?

  init(_ arguments: Arguments) throws {
    path = try arguments.value(Self.file)
    newPath = try arguments.value(Self.newFile)
  }

  /// The key of an existing database. Asks for it on a terminal if none is given. Nil if there is none.
  func existing(for database: String) throws -> UserKey? {
    if let key = try given() { return key }
    return try Passphrase.ask("Key of \(database)").map { try .passphrase($0) }
  }

  /// The key of an existing database. Throws `keyRequired` if there is none.
  func required(for database: String) throws -> UserKey {
    guard let key = try existing(for: database) else {
      throw DatabaseError(
        .keyRequired,
        "the database is encrypted and no key was given; use --key-file FILE or the variable \(Self.variable)",
        path: database)
    }
    return key
  }

  /// Opens a database that exists, with the key if it is encrypted. Another process may encrypt or decrypt it while this one waits
  /// for it: then this one looks again.
  func open(_ path: String, _ options: DatabaseOptions) throws -> Database {
    var options = options
    while true {
      let isEncrypted = try Database.isEncrypted(path)
      options.key = isEncrypted ? try required(for: path) : nil
      do { return try Database.open(path, options: options) } catch let error as DatabaseError
        where error.code == (isEncrypted ? .notEncrypted : .keyRequired)
      {
        guard try Database.isEncrypted(path) != isEncrypted else { throw error }
      }
    }
  }

  /// The key that was given, without a prompt.
  func given() throws -> UserKey? {
    if let path { return try UserKey(contentsOfFile: path) }
    return try Self.key(inVariable: Self.variable)
  }

  /// The key that was given for a new database, or nil.
  func new() throws -> UserKey? {
    if let newPath { return try UserKey(contentsOfFile: newPath) }
    return try Self.key(inVariable: Self.newVariable)
  }

  /// The key of a new database that needs one: the new key, or else the key, or else a prompt that asks
  /// twice.
  func requiredNew(for database: String) throws -> UserKey? {
    if let key = try new() ?? given() { return key }
    return try askedNew(for: database)
  }

  /// Returns the key of a result whose engine always encrypts.
  func requiredNew(for database: String, engine: EngineName) throws -> UserKey {
    guard let key = try requiredNew(for: database) else {
      throw UsageError("\(engine) needs a key; use --new-key-file FILE or the variable \(Self.newVariable)")
    }
    return key
  }

  /// The error of a new key for an engine that can't use it.
  static func cannotEncrypt(_ engine: EngineName) -> UsageError {
    UsageError("a new key was given, but \(engine) can't encrypt; choose another engine, such as sqlcipher")
  }

  /// A new key, typed twice on a terminal; nil without a terminal.
  func askedNew(for database: String) throws -> UserKey? {
    guard let first = try Passphrase.ask("New key of \(database)") else { return nil }
    guard try Passphrase.ask("The new key again") == first else {
      throw UsageError("the two keys that were typed differ; run the command again")
    }
    return try .passphrase(first)
  }

  /// The keys that were in variables.
  private static let taken = Lock<[String: UserKey]>([:])

  /// The key in a variable, which has it no more.
  private static func key(inVariable name: String) throws -> UserKey? {
    try taken.withLock { taken in
      if let known = taken[name] { return known }
      guard let text = EnvironmentVariable.take(name) else { return nil }
      do {
        let key = try UserKey.passphrase(text)
        taken[name] = key
        return key
      } catch let error as EncryptionError { throw EncryptionError(error.code, "\(name): \(error.message)") }
    }
  }
}

extension EnvironmentVariable {
  /// Returns the text of a variable with a secret, or nil if it is unset or empty. The variable is wiped and unset, so that neither
  /// child processes nor `/proc/PID/environ` have it.
  static func take(_ name: String) -> String? {
    guard let text = value(name) else { return nil }
    if let bytes = getenv(name) { memset(bytes, 0, strlen(bytes)) }
    unsetenv(name)
    return text
  }
}
