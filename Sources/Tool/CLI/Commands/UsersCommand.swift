import Fleece
import HTTPAPI
import Server
import Touchstone
import Views

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone users`: the users of a directory of databases that is served.
struct UsersCommand: Subcommand {
  private static let actions = ["list", "add", "password", "roles", "remove"]
  private static let folder = Positional("DIR", "A directory of databases, as 'touchstone serve' serves it")
  private static let action = Positional("ACTION", "list, add, password, roles or remove").choosing(actions)
  private static let name = Positional("NAME", "The user", count: .optional)
  private static let roles = Option("roles", "A,B", "For add and roles: the roles of the user. Default: none")
  private static let admin = Flag(
    "admin", "The user is an administrator of the server, who may do everything")
  private static let engine = DatabaseArguments.engine(
    "For add: the engine of the database _users, if there is none yet")

  static let usage = Usage(
    "users", "Lists, adds and changes the users of a directory of databases",
    positionals: [folder, action, name],
    options: [roles, admin, UserPasswordSource.file, engine, Keys.file, DatabaseArguments.json],
    examples: [
      "touchstone users databases add me --admin --password-file secret",
      "touchstone users databases add carol --roles readers --password-file secret",
      "touchstone users databases list", "touchstone users databases roles carol --roles readers,writers",
    ],
    notes: """
      Users are documents of the database _users, as in CouchDB, with a salted slow hash of the password. What
      they may do is in the _security of each database (docs/http-users.md). Administrators are in the file
      server-admins of the directory; with the first one, 'touchstone serve' lets nobody in without a login. The
      password may also be in the variable TOUCHSTONE_PASSWORD. A server that runs notices changes at once.
      """)

  private enum Action {
    case list
    case add(String)
    case setPassword(String)
    case setRoles(String)
    case remove(String)
  }

  private let path: String
  private let action: Action
  private let keys: Keys
  private let password: UserPasswordSource
  private let roles: [String]?
  private let isAdmin: Bool
  private let engine: EngineName?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    path = try arguments.required(Self.folder)
    keys = try Keys(arguments)
    password = try UserPasswordSource(arguments)
    roles = try arguments.value(Self.roles).map { $0.split(separator: ",").map { String($0) } }
    isAdmin = arguments[Self.admin]
    engine = try arguments.value(Self.engine)
    asJSON = arguments[DatabaseArguments.json]
    let word = try arguments.required(Self.action)
    switch (word, arguments.optional(Self.name)) {
    case ("list", nil): action = .list
    case ("list", let name?): throw UsageError("unexpected argument '\(name)'")
    case ("add", let name?): action = .add(name)
    case ("password", let name?): action = .setPassword(name)
    case ("roles", let name?): action = .setRoles(name)
    case ("remove", let name?): action = .remove(name)
    case (_, nil) where Self.actions.contains(word): throw UsageError("NAME is missing")
    default: throw UsageError("'\(word)' isn't \(Self.actions.joined(separator: ", "))")
    }
    guard roles == nil || word == "add" || word == "roles" else {
      throw UsageError("--roles works only with add and roles")
    }
    guard roles == nil || !isAdmin else {
      throw UsageError(
        "an administrator of the server has no other roles: --admin and --roles exclude each other")
    }
    guard !isAdmin || word != "roles" else { throw UsageError("--admin doesn't work with roles") }
  }

  func run(_ output: StandardOutput) throws {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, !Database.exists(path) else {
      throw UsageError("\(path) isn't a directory of databases")
    }
    let folder = try DatabaseFolder(path)
    defer { try? folder.close() }
    let file = path + "/" + UserFileChange.administrators
    switch action {
    case .list: try list(file, folder, output)
    case .add(let name) where isAdmin, .setPassword(let name) where isAdmin:
      let exists = access(file, F_OK) == 0
      let isKnown = try exists && UserFile(file).names.contains { $0.utf8.elementsEqual(name.utf8) }
      if case .add = action, isKnown { throw Refusal("there is an administrator '\(name)' already") }
      if case .setPassword = action, !isKnown { throw Refusal("there is no administrator '\(name)'") }
      _ = try UserFileChange.set(name, password: password.read(for: name), in: file)
      try output.line("\(isKnown ? "changed" : "added") \(name), an administrator, in \(file)")
    case .remove(let name) where isAdmin:
      _ = try UserFileChange.set(name, password: nil, in: file)
      try output.line("removed \(name), an administrator, from \(file)")
    case .add(let name):
      let database = try users(in: folder, makes: true)
      guard try database.document(id(name)) == nil else { throw Refusal("there is a user '\(name)' already") }
      let body = UserDocument.body(name: name, password: try password.read(for: name), roles: roles ?? [])
      try save(name, body, replacing: nil, in: database)
      try database.close()
      try output.line("added \(name)")
    case .setPassword(let name):
      try change(name, in: folder) { $0["password"] = .string(try password.read(for: name)) }
      try output.line("changed the password of \(name)")
    case .setRoles(let name):
      try change(name, in: folder) { $0["roles"] = .array((roles ?? []).map { .string($0) }) }
      try output.line("changed the roles of \(name)")
    case .remove(let name):
      let database = try users(in: folder, makes: false)
      guard try database.document(id(name)) != nil else { throw Refusal("there is no user '\(name)'") }
      try database.delete(id(name))
      try database.close()
      try output.line("removed \(name)")
    }
  }

  private func id(_ name: String) -> String { UserDocument.idPrefix + name }

  private func list(_ file: String, _ folder: DatabaseFolder, _ output: StandardOutput) throws {
    if access(file, F_OK) == 0 {
      for name in try UserFile(file).names { try print(name, ["_admin"], output) }
    }
    guard folder.exists(UserDocument.database) else { return }
    let database = try users(in: folder, makes: false)
    try database.read { snapshot in
      let sharedKeys = try snapshot.sharedKeys
      try snapshot.enumerate(AllDocuments(.live, prefix: UserDocument.idPrefix)) { document in
        guard let name = UserDocument.name(ofID: document.id) else { return true }
        let body = try document.body?.jsonValue(sharedKeys: sharedKeys).object
        try print(name, UserDocument.roles(body ?? [:]), output)
        return true
      }
    }
    try database.close()
  }

  private func print(_ name: String, _ roles: [String], _ output: StandardOutput) throws {
    guard asJSON else {
      return try output.line(roles.isEmpty ? name : "\(name)\t\(roles.joined(separator: ","))")
    }
    let value: JSONValue = ["name": .string(name), "roles": .array(roles.map { .string($0) })]
    try output.line(value.canonicalJSON())
  }

  /// The database of users. It is made if `makes` says so.
  private func users(in folder: DatabaseFolder, makes: Bool) throws -> Database {
    let location = try folder.path(of: UserDocument.database)
    if folder.exists(UserDocument.database) {
      return try keys.open(location, DatabaseOptions(creation: .openExisting))
    }
    guard makes else { throw Refusal("there is no database \(UserDocument.database) in \(path)") }
    let database = try NewDatabase.make(location, engine: engine, keys: keys)
    // As many as those have that a server makes.
    try database.setMaximumTreeDepth(1_000)
    return database
  }

  private func change(_ name: String, in folder: DatabaseFolder, _ change: (inout JSONObject) throws -> Void)
    throws
  {
    let database = try users(in: folder, makes: false)
    guard let document = try database.document(id(name)), var body = try document.value().object else {
      throw Refusal("there is no user '\(name)'")
    }
    let old = body
    try change(&body)
    try save(name, body, replacing: old, in: database, basedOn: document.revisionID)
    try database.close()
  }

  private func save(
    _ name: String, _ body: JSONObject, replacing old: JSONObject?, in database: Database,
    basedOn revision: RevisionID? = nil
  ) throws {
    do {
      try UserDocument.check(
        id(name), body, isDeleted: false, replacing: old, by: .everybody, isAdmin: true)
      let hashed = try UserDocument.hashingPassword(body)
      try database.save(id(name), .value(.object(hashed)), basedOn: revision, onConflict: .fail)
    } catch let error as CouchDBError { throw UsageError(error.reason) }
  }
}
