import Storage

// location = path | scheme "://" rest "#" name
//
// A text is a location on a server if it begins with a scheme: letters, digits, "+", "-" and "." before "://". Everything else
// is a path. The name is percent-encoded UTF-8 without "@" and "/".

/// Where a database is: in a directory, or on a server.
///
/// ```swift
/// let travel = try Database.open(DatabaseLocation("postgres://db.example/app#travel"))
/// ```
///
/// A location on a server may hold a password. It reaches the server's library and nothing else: `description`, errors and logs show
/// the location without it. Better leave it out, and keep it in the library's own file (docs/storage-postgres.md).
public struct DatabaseLocation: Sendable, Hashable {
  /// The path or the location, with what is secret in it.
  let text: String
  /// The scheme of a location on a server. Nil for a path.
  let scheme: String?

  /// Reads a path or a location on a server. It asks no server, and needs no engine.
  ///
  /// Throws `DatabaseError.invalidLocation` for a location without a name, and `DatabaseError.invalidName` for a name that is empty,
  /// isn't UTF-8 or has control characters.
  public init(_ text: String) throws {
    self.text = text
    scheme = LocationText.scheme(of: text)?.lowercased()
    guard scheme != nil else { return }
    guard let (_, encoded) = LocationText.split(text) else {
      throw DatabaseError(
        .invalidLocation,
        "the location has no name of a database, which stands behind a #, as in postgres://host/db#travel",
        path: description)
    }
    guard let name = LocationText.decoded(encoded) else {
      throw DatabaseError(
        .invalidName, "the name of the database isn't percent-encoded UTF-8", path: description)
    }
    guard !name.isEmpty, !name.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
    else {
      throw DatabaseError(
        .invalidName, "the name of the database is empty or has control characters", path: description)
    }
  }

  /// Makes the location of a directory. A path that looks like a location on a server is a path too.
  public init(path: String) {
    text = LocationText.scheme(of: path) == nil ? path : "./" + path
    scheme = nil
  }

  /// Whether it is on a server, and not a path.
  public var isOnServer: Bool { scheme != nil }

  /// The engine of a location on a server; nil for a path. Throws `unknownEngine` if this build doesn't have it, and `invalidLocation`
  /// if its scheme is unknown.
  public var engine: EngineName? {
    get throws {
      try scheme.map { EngineName(rawValue: try Engines.type(ofScheme: $0, path: description).name) }
    }
  }

  /// Whether a text is read as a location on a server, and not as a path.
  public static func isOnServer(_ text: String) -> Bool { LocationText.scheme(of: text) != nil }
}

extension DatabaseLocation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The path, or the location without passwords.
  public var description: String { scheme == nil ? text : LocationText.withoutSecrets(text) }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Shows `description` only.
  public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
