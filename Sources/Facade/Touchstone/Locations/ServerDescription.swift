import FoundationEssentials

// The description of a database on a server is the JSON of database.json, without names of files:
//
//   {"engine":"postgres","version":1}

/// What a database on a server says of itself.
struct ServerDescription: Codable, Equatable {
  var version = DatabaseDirectory.version
  var engine: String

  init(engine: String) { self.engine = engine }

  /// Reads the JSON. Throws `unsupportedVersion` and `damaged`.
  init(_ text: String, path: String) throws {
    struct Version: Codable { var version: Int }
    let data = Data(text.utf8)
    guard let version = try? JSONDecoder().decode(Version.self, from: data).version else {
      throw DatabaseError(.damaged, "the description of the database can't be read", path: path)
    }
    guard version == DatabaseDirectory.version else {
      throw DatabaseError(
        .unsupportedVersion,
        "the database has format version \(version); this release reads version \(DatabaseDirectory.version)",
        path: path)
    }
    guard let description = try? JSONDecoder().decode(Self.self, from: data) else {
      throw DatabaseError(.damaged, "the description of the database doesn't name its engine", path: path)
    }
    self = description
  }

  /// The JSON, always the same for the same description.
  var text: String {
    get throws {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys]
      return String(decoding: try encoder.encode(self), as: UTF8.self)
    }
  }
}
