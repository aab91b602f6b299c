import Touchstone

/// The arguments that all commands on one database share.
struct DatabaseArguments {
  static let database = Positional(
    "DB",
    "The database: a NAME.touchstone directory, whose suffix may be left out, or a location on a server, such as postgres://host/db#name"
  )
  static let readOnly = Flag(
    "read-only", "Opens the database for reading only. Only locks of the engine are written")
  static let json = Flag("json", "Prints JSON")
  /// The options of commands that only read.
  static let readingOptions: [any NamedOption] = [Keys.file, readOnly]

  /// The option `--engine`, for commands that make a database or change its engine. An unknown name is an
  /// error that lists the known ones.
  static func engine(_ summary: String) -> Option<EngineName> {
    Option("engine", "ENGINE", summary) { text in
      let name = EngineName(rawValue: text)
      _ = try Engines.type(name)
      return name
    }.choosing(Engines.names.map(\.rawValue))
  }

  /// The path or location. For people it is `shownPath`.
  let path: String
  /// The path, or the location without passwords.
  var shownPath: String { LocationSecrets.without(path) }
  let keys: Keys
  private let isReadOnly: Bool

  init(_ arguments: Arguments, _ database: Positional = Self.database) throws {
    path = try arguments.required(database)
    keys = try Keys(arguments)
    isReadOnly = arguments[Self.readOnly]
  }

  /// Opens the database, which must exist. The key is needed only if it is encrypted. With `watchesOtherProcesses`, changes
  /// of other processes are noticed at once. With `checksFile` the engine checks its file first.
  func open(watchesOtherProcesses: Bool = false, checksFile: Bool = false) throws -> Database {
    var options = DatabaseOptions(creation: .openExisting, isReadOnly: isReadOnly)
    options.watchesOtherProcesses = watchesOtherProcesses
    options.checksFile = checksFile
    return try keys.open(path, options)
  }

  /// The key. Throws `keyRequired` if none is given or typed.
  func key() throws -> UserKey { try keys.required(for: path) }
}
