import Bytes
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A folder of databases, each of which has a name.
///
/// ```swift
/// let folder = try DatabaseFolder()
/// let notes = try folder.open("notes")
/// try folder.install("catalog", from: "/app/assets/catalog.zip")
/// print(try folder.names())
/// ```
///
/// It does what the `Manager` of Couchbase Lite 1.x did. It may be used from any thread, and several folders
/// and processes may use one directory at the same time. It keeps no file open, and its databases stay open
/// without it.
///
/// A name is any text that follows these rules: it isn't empty, it doesn't begin with a dot or end with
/// `.touchstone`, it has no control characters, and its file name has at most 244 bytes. In a file name, `/`
/// and `%` take 3 bytes each (docs/folders.md). Names are equal when their bytes are equal. Operations throw
/// `invalidName` for other names.
///
/// A folder may be on a server: its path is then a location without a name, such as `postgres://host/db`, and each database
/// is a schema. Names have at most 63 bytes there, and don't begin with `pg_`. Databases there aren't replaced.
public final class DatabaseFolder: Sendable {
  /// The absolute path of the directory. The directory is made when the first database is. On a server it is the location without
  /// passwords.
  public let path: String
  /// The location of a folder on a server, with what is secret in it. Nil for a directory.
  private let server: String?
  /// The options of databases that are opened without other options. Its key is also the key of databases
  /// that are installed.
  public let options: DatabaseOptions
  private let opened = OpenedDatabases()
  /// Whether only this user may look into the directory, if it is made.
  private let isPrivate: Bool

  /// Makes a folder from a directory, which need not exist yet.
  ///
  /// - Parameters:
  ///   - path: the directory; nil for `defaultPath`. A relative path starts from the present current
  ///     directory. Or a location on a server without a name.
  ///   - options: the default options of the folder's databases.
  ///
  /// Throws `invalidName` if the path is empty or contains a zero byte, `invalidLocation` for a location with a name or an unknown scheme, and
  /// `unknownEngine` if this build doesn't have the engine of the location.
  public init(_ path: String? = nil, options: DatabaseOptions = DatabaseOptions()) throws {
    let path = try (path ?? Self.defaultPath)
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw DatabaseError(.invalidName, "the path of the folder is empty or contains a zero byte")
    }
    self.options = options
    if let scheme = LocationText.scheme(of: path)?.lowercased() {
      let shown = LocationText.withoutSecrets(path)
      guard LocationText.split(path) == nil else {
        throw DatabaseError(
          .invalidLocation, "the location of a folder has no name of a database behind a #", path: shown)
      }
      _ = try Engines.type(ofScheme: scheme, path: shown)
      server = path
      self.path = shown
      isPrivate = false
      return
    }
    server = nil
    self.path = try Self.absolute(path)
    isPrivate = self.path.utf8.elementsEqual(((try? Self.defaultPath) ?? "").utf8)
  }

  private static func absolute(_ path: String) throws -> String {
    let slash = UInt8(ascii: "/")
    var bytes = Array(path.utf8)
    while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
    if bytes.first != slash {
      guard let current = getcwd(nil, 0) else {
        throw StorageError.system(errno, "can't read the path of the current directory", path)
      }
      defer { free(current) }
      bytes = Array(String(cString: current).utf8) + [slash] + bytes
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  // MARK: Opening

  /// Opens the database of that name, and makes it and the folder if there is none and the options allow it.
  ///
  /// `options` replaces the options of the folder. All opens of one name in a process share the engine, and
  /// each has to be closed. Throws as `Database.open` does.
  public func open(_ name: String, options: DatabaseOptions? = nil) throws -> Database {
    let options = options ?? self.options
    if let location = try location(of: name) {
      let database = try Database.open(location, in: nil, options, name: name)
      opened.add(database, name)
      return database
    }
    let path = try self.path(of: name)
    if !options.isReadOnly {
      if options.creation != .openExisting { try makeFolder() }
      PartialDirectory.removeAbandoned(in: try DatabaseDirectory(path).parent)
    }
    let database = try Database.open(path, options, name: name)
    opened.add(database, name)
    return database
  }

  /// Opens the database of that name. Throws `notFound` if there is none, and otherwise as `open` does.
  public func openExisting(_ name: String, options: DatabaseOptions? = nil) throws -> Database {
    var options = options ?? self.options
    options.creation = .openExisting
    return try open(name, options: options)
  }

  /// Closes all databases that were opened through this object. The folder can still be used.
  ///
  /// If some can't be closed, the others are, and it throws a `CloseError` that lists them. They stay open,
  /// and the next call tries again. A database that is opened during the call may stay open.
  public func close() throws {
    var failures: [CloseError.Failure] = []
    for (name, database) in opened.takeAll() {
      do { try database.close() } catch {
        opened.add(database, name)
        failures.append(CloseError.Failure(name: name, error: error))
      }
    }
    guard failures.isEmpty else { throw CloseError(failures: failures) }
  }

  /// Some databases of a folder couldn't be closed.
  public struct CloseError: Error, Sendable, CustomStringConvertible {
    /// A database that couldn't be closed.
    public struct Failure: Sendable {
      /// The name of the database.
      public let name: String
      /// The error that closing it threw.
      public let error: any Error
    }

    /// The databases that couldn't be closed, one entry for each open.
    public let failures: [Failure]

    /// The names with their errors.
    public var description: String {
      "databases can't be closed: " + failures.map { "\($0.name) (\($0.error))" }.joined(separator: "; ")
    }
  }

  // MARK: Names

  /// Returns the names of the complete databases in the folder, in the order of their bytes. It is empty if
  /// the folder doesn't exist.
  ///
  /// Directories whose names don't follow the rules are left out. Removes what interrupted operations left in
  /// the folder.
  public func names() throws -> [String] {
    if let server {
      let type = try Engines.type(ofScheme: LocationText.scheme(of: server)?.lowercased() ?? "", path: path)
      return try type.server?.names(server).filter(Self.isValidName) ?? []
    }
    var status = stat()
    guard stat(path, &status) == 0 || errno != ENOENT else { return [] }
    PartialDirectory.removeAbandoned(in: path)
    let names = try DatabaseDirectory.contents(of: path).compactMap { directory -> String? in
      guard let name = FolderName.name(of: directory),
        stat("\(path)/\(directory)/\(DatabaseDirectory.descriptionName)", &status) == 0
      else { return nil }
      return name
    }
    // Names that aren't UTF-8 are read as another name, which may exist.
    var found: Set<ByteString> = []
    return names.filter { found.insert(ByteString($0)).inserted }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  /// Whether there is a complete database of that name. False if the name isn't valid.
  public func exists(_ name: String) -> Bool {
    (try? place(of: name).isComplete()) ?? false
  }

  /// Whether a database in a folder can have that name.
  public static func isValidName(_ name: String) -> Bool { (try? FolderName.directory(of: name)) != nil }

  /// Returns the path of the directory of the database of that name, which need not exist. On a server it is the location without
  /// passwords. Throws `invalidName`.
  public func path(of name: String) throws -> String {
    if let location = try location(of: name) { return location.description }
    return Self.joined(path, try FolderName.directory(of: name))
  }

  // MARK: For the operations on the folder

  /// The location of a database on a server; nil if the folder is a directory.
  private func location(of name: String) throws -> DatabaseLocation? {
    guard let server else { return nil }
    // The same names everywhere.
    _ = try FolderName.directory(of: name)
    return try DatabaseLocation(server + "#" + LocationText.encoded(name))
  }

  /// Where a database is.
  func place(of name: String) throws -> DatabasePlace {
    if let location = try location(of: name) { return try DatabasePlace(location) }
    return .directory(try directory(of: name))
  }

  /// The directory of a database. Throws `invalidLocation` if the folder is on a server.
  func directory(of name: String) throws -> DatabaseDirectory { try DatabaseDirectory(path(of: name)) }

  /// The directory of a database that will be made. Makes the folder, so that its path can be resolved.
  func newDirectory(of name: String) throws -> DatabaseDirectory {
    let path = try self.path(of: name)
    try makeFolder()
    return try DatabaseDirectory(path)
  }

  /// Makes the directory if there is none.
  package func makeIfMissing() throws { try makeFolder() }

  /// Whether the directory is there.
  package var isThere: Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private func makeFolder() throws {
    guard server == nil else { return }
    // The name is only there for its parent directory.
    try DatabaseDirectory.makeParents(of: path + "/-", permissions: isPrivate ? 0o700 : 0o755)
  }
}
