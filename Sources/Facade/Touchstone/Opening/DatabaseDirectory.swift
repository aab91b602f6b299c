import Encryption
import FoundationEssentials
import Storage

#if canImport(Glibc)
  import Glibc
#endif

// A database is a directory, NAME.touchstone:
//
//   database.json   {"engine":"sqlcipher","file":"data-1.sqlite","key":"key.json","version":1}: which engine, which
//                   of its files is the data, which file holds the wrapped data key when the database is
//                   encrypted, and where the blobs are: "blobs", left out when that is Attachments. Replaced
//                   whole, by a rename; written last when a database is made.
//   key.json        the wrapped data key, when the database is encrypted (docs/encryption.md); or key-N.json
//   lock            empty; opens hold a shared flock on it, operations that change files an exclusive one
//   lock-PURPOSE    empty; who does that work in the background holds an exclusive flock on it
//   data-N.EXT      the engine's file, or its directory; engines may have others whose names begin with it
//   Attachments/    blobs; or Attachments-N/
//
// An interrupted operation can leave files with these names that database.json doesn't name.

/// The directory of a database and its `database.json`.
struct DatabaseDirectory {
  static let suffix = ".touchstone"
  static let version = 1
  /// The file names of a new database.
  static let key = KeyFile.name
  static let blobs = "Attachments"

  /// The path with symbolic links resolved. While the parent directory doesn't exist, it is the path as
  /// given.
  let path: String
  /// The path as it was given, if a symbolic link is there.
  let link: String?

  /// The content of `database.json`.
  struct Description: Codable, Equatable {
    var version: Int
    var engine: String
    var file: String
    /// The file with the wrapped data key; nil when the database isn't encrypted.
    var key: String?
    /// The directory of the blobs; nil for `Attachments`.
    var blobs: String?
  }

  /// Makes the path from a name with or without the suffix, absolute, relative, or relative to `directory`.
  init(_ name: String, in directory: String? = nil) throws {
    guard !name.isEmpty, !name.utf8.contains(0) else {
      throw DatabaseError(.invalidName, "the name of the database is empty or contains a zero byte")
    }
    guard !DatabaseLocation.isOnServer(name) else {
      throw DatabaseError(
        .invalidLocation, "this needs a database in a directory, and not one on a server",
        path: LocationText.withoutSecrets(name))
    }
    guard directory.map({ !$0.isEmpty && !$0.utf8.contains(0) }) ?? true else {
      throw DatabaseError(.invalidName, "the directory of the database is empty or contains a zero byte")
    }
    // Compares bytes: a slash and a combining mark after it are one `Character`.
    let slash = UInt8(ascii: "/")
    var bytes = Array(name.utf8)
    while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
    if !bytes.suffix(DatabaseDirectory.suffix.utf8.count).elementsEqual(DatabaseDirectory.suffix.utf8) {
      bytes += Array(DatabaseDirectory.suffix.utf8)
    }
    if let directory, bytes.first != slash { bytes = Array(directory.utf8) + [slash] + bytes }
    var path = String(decoding: bytes, as: UTF8.self)
    let last = String(decoding: bytes.split(separator: slash).last ?? [], as: UTF8.self)
    guard last.utf8.count > DatabaseDirectory.suffix.utf8.count, last.utf8.count <= 255 else {
      throw DatabaseError(
        .invalidName,
        "the name of a database must have 1 to \(255 - DatabaseDirectory.suffix.utf8.count) bytes",
        path: path)
    }
    let base = last.utf8.dropLast(DatabaseDirectory.suffix.utf8.count)
    guard !base.elementsEqual(".".utf8), !base.elementsEqual("..".utf8) else {
      throw DatabaseError(.invalidName, "a database can't have the name '.' or '..'", path: path)
    }
    link = Self.isLink(path) ? path : nil
    // One directory has one path, whichever links lead to it.
    if let resolved = realpath(path, nil) {
      path = String(cString: resolved)
      free(resolved)
    } else {
      let end = bytes.lastIndex(of: slash)
      let parent = end.map { String(decoding: bytes[..<$0], as: UTF8.self) } ?? "."
      if let resolved = realpath(parent.isEmpty ? "/" : parent, nil) {
        path = String(cString: resolved) + "/" + last
        free(resolved)
      }
    }
    self.path = path
  }

  /// The database's name: the directory's name without the suffix.
  var name: String {
    String(
      decoding: (path.utf8.split(separator: UInt8(ascii: "/")).last ?? "".utf8[...]).dropLast(
        DatabaseDirectory.suffix.utf8.count), as: UTF8.self)
  }

  /// The directory that contains the database's directory.
  var parent: String { Self.parent(of: path) }

  /// The directory that contains `path`.
  static func parent(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Throws `invalidName` if the path is too long for the files of an engine.
  func checkFits(_ type: EngineType) throws {
    guard let longest = type.longestPath else { return }
    let file = self.file("data-1.\(type.fileExtension)").utf8.count
    guard file > longest else { return }
    throw DatabaseError(
      .invalidName,
      "the path is too long: the file of the database would have a path of \(file) bytes, and the engine "
        + "\(type.name) opens paths of up to \(longest) bytes", path: path)
  }

  /// The error for a missing parent directory.
  static func noParent(of path: String) -> DatabaseError {
    DatabaseError(
      .noParentDirectory,
      "the parent directory '\(parent(of: path))' doesn't exist; make it first, or set makesParents",
      path: path)
  }

  /// Makes the parent directory of a new database, and the directories above it.
  static func makeParents(of path: String, permissions: UInt32 = 0o755) throws {
    let parent = parent(of: path)
    if mkdir(parent, mode_t(permissions)) == 0 {
      return try AtomicFile.syncDirectory(of: parent)
    }
    if errno == ENOENT, parent != path {
      try makeParents(of: parent, permissions: permissions)
      guard mkdir(parent, mode_t(permissions)) == 0 || errno == EEXIST else {
        throw StorageError.system(errno, "can't make the directory", parent)
      }
      return try AtomicFile.syncDirectory(of: parent)
    }
    guard errno == EEXIST || errno == EROFS || errno == EACCES else {
      throw StorageError.system(errno, "can't make the directory", parent)
    }
  }

  /// Syncs the directory that contains this one, so that the name of a new database survives a power loss.
  func syncName() throws {
    do { try AtomicFile.syncDirectory(of: path) } catch let error as StorageError
      where error.code == .permissionDenied
    {
      // A directory that may be written but not read can't be opened.
    }
  }

  func file(_ name: String) -> String { path + "/" + name }
  static let descriptionName = "database.json"
  var descriptionPath: String { file(Self.descriptionName) }
  /// The file with the wrapped data key; nil when the database isn't encrypted.
  func keyPath(_ description: Description) -> String? { description.key.map(file) }
  func blobsPath(_ description: Description) -> String { file(description.blobs ?? Self.blobs) }

  var exists: Bool { isThere(path) }
  /// Whether the database is complete: `database.json` is written last.
  var isComplete: Bool { isThere(descriptionPath) }

  /// The error of a database that isn't there, is no database, or lies in a directory that this user may not enter.
  var missing: any Error {
    var status = stat()
    if stat(descriptionPath, &status) != 0, errno == EACCES {
      return StorageError.system(EACCES, "can't look for the database", path)
    }
    return DatabaseError(exists ? .notADatabase : .notFound, "there is no database", path: path)
  }

  private static func isLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  /// Removes the symbolic link that led to the directory, if one did. Called when the directory is gone.
  func removeLink() throws {
    guard let link, Self.isLink(link) else { return }
    guard unlink(link) == 0 else { throw StorageError.system(errno, "can't remove the symbolic link", link) }
    try AtomicFile.syncDirectory(of: link)
  }

  func isThere(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0
  }

  func readDescription() throws -> Description {
    let bytes = try AtomicFile.read(descriptionPath, limit: 65_536)
    let decoder = JSONDecoder()
    let description = try? decoder.decode(Description.self, from: Data(bytes))
    struct Version: Codable { var version: Int }
    guard let version = try? description?.version ?? decoder.decode(Version.self, from: Data(bytes)).version
    else {
      throw DatabaseError(.damaged, "this file isn't the description of a database", path: descriptionPath)
    }
    guard version == DatabaseDirectory.version else {
      throw DatabaseError(
        .unsupportedVersion,
        "\(Self.descriptionName) says format version \(version); this release reads version \(DatabaseDirectory.version)",
        path: descriptionPath)
    }
    guard let description,
      !description.file.contains("/"), description.file.hasPrefix("data-"),
      description.key.map(Self.isKeyFile) ?? true, description.blobs.map(Self.isBlobDirectory) ?? true
    else {
      throw DatabaseError(
        .damaged, "the description of the database doesn't name its engine or its file", path: descriptionPath
      )
    }
    return description
  }

  func write(_ description: Description) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try AtomicFile.write(try encoder.encode(description), to: descriptionPath, permissions: 0o644)
  }

  /// Checks a directory without a description: it may hold only files of an interrupted creation. Throws
  /// `notADatabase`.
  func checkIsUnfinished() throws {
    let names = try contents()
    let isOurs = names.allSatisfy { name in
      Self.isLock(name) || Self.isBlobDirectory(name) || name.hasPrefix("key") || name.hasPrefix("data-")
        || name.hasPrefix("database.json")
    }
    guard isOurs else {
      throw DatabaseError(.notADatabase, "the directory isn't empty, but contains no database", path: path)
    }
  }

  /// Throws `notADatabase` if there is a file in place of the directory.
  func checkIsDirectory() throws {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard Self.isLink(path) else { return }
      throw DatabaseError(.notADatabase, "this is a symbolic link that leads nowhere", path: path)
    }
    guard status.st_mode & S_IFMT != S_IFDIR else { return }
    throw DatabaseError(.notADatabase, "this is a file, but a database is a directory", path: path)
  }

  /// Throws `invalidName` if the path lies inside the directory of another database, which would be removed with that one.
  func checkIsOutsideOfOthers() throws {
    var parent = self.parent
    while parent != "/", parent != "." {
      if parent.utf8.suffix(Self.suffix.utf8.count).elementsEqual(Self.suffix.utf8),
        isThere(parent + "/" + Self.descriptionName)
      {
        throw DatabaseError(
          .invalidName, "a database can't lie inside the directory of another one, which is \(parent)",
          path: path)
      }
      parent = Self.parent(of: parent)
    }
  }

  /// The names in the directory, sorted.
  func contents() throws -> [String] { try DatabaseDirectory.contents(of: path) }

  static func contents(of path: String) throws -> [String] { try FileTree.names(in: path).sorted() }

  /// Removes the engine's file, and the files beside it whose names begin with its name.
  func removeData(_ file: String) throws {
    for name in try contents() where name == file || name.hasPrefix(file + "-") {
      try? FileTree.remove(self.file(name))
    }
  }

  /// Removes the engine's files except `file` and the files beside it.
  func removeData(otherThan file: String) throws {
    for name in try contents() where name.hasPrefix("data-") && name != file && !name.hasPrefix(file + "-") {
      try? FileTree.remove(self.file(name))
    }
  }
}
