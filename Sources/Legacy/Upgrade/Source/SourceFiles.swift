// The files of a 1.x database:
//
//   NAME.cblite2/db.sqlite3, NAME.cblite2/attachments/     iOS 1.1, Android and .NET 1.2, and later
//   NAME.cblite, "NAME attachments/"                       iOS 1.0, others up to 1.1; or NAME.touchdb
//   NAME.cblite, NAME/attachments/                         Android and .NET 1.0
//
// with NAME.cblite-wal or -journal beside it; and with ForestDB storage
//
//   NAME.cblite2/db.forest.0, NAME.cblite2/db.forest.meta, NAME.cblite2/attachments/      1.2 and later

import Encryption
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The files of a database of another product, found by their names and contents.
package struct SourceFiles: Sendable, Hashable {
  /// What documents are stored in.
  package enum Storage: String, Sendable {
    case sqlite = "SQLite"
    case forestDB = "ForestDB"
  }

  /// The storage.
  package let storage: Storage
  /// The path that was given.
  package let path: String
  /// The SQLite file, or the directory of a database in ForestDB.
  package let file: String
  /// The names of ForestDB's files in the directory.
  let forestNames: [String]
  /// The possible directories of attachments, in the order in which they are searched.
  package let attachmentDirectories: [String]

  /// The suffixes of 1.x database names.
  package static let suffixes = [".cblite2", ".cblite", ".touchdb"]

  /// Finds the files at `path`, which is a directory or a database file.
  ///
  /// Throws an `UpgradeError` that says what is there, if it can't be a 1.x database in SQLite. Opening the
  /// file shows whether it is one.
  package init(_ path: String) throws {
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    // One of the files can be given for the database.
    let isFileOfForestDB =
      path.split(separator: "/").last?.hasPrefix(Self.forestPrefix) == true && Self.kind(path) == S_IFREG
    if isFileOfForestDB { path = Self.parent(of: path) }
    self.path = path
    guard let kind = Self.kind(path) else {
      let likely = Self.suffixes.map { path + $0 }.first { Self.kind($0) != nil }
      throw UpgradeError(
        .notFound, "there is no database" + (likely.map { "; did you mean \($0)?" } ?? ""), path: path)
    }
    guard kind == S_IFDIR else {
      let base = Self.withoutSuffix(path)
      let parent = Self.parent(of: path)
      file = path
      attachmentDirectories = [base + " attachments", base + "/attachments", parent + "/attachments"]
      storage = .sqlite
      forestNames = []
      if path.hasSuffix("/db.sqlite3"), Self.kind(parent + "/Attachments") != nil {
        throw Self.laterVersion(parent)
      }
      return
    }
    let names = Self.names(in: path)
    if names.contains("database.json") {
      throw UpgradeError(.notOld, "this is a Touchstone database, which needs no upgrade", path: path)
    }
    guard names.contains("db.sqlite3"), !isFileOfForestDB else {
      forestNames = names.filter { $0.hasPrefix(Self.forestPrefix) }
      guard forestNames.isEmpty else {
        storage = .forestDB
        file = path
        attachmentDirectories = [path + "/attachments"]
        return
      }
      let inner = names.filter { name in Self.suffixes.contains { name.hasSuffix($0) } }
      guard inner.isEmpty else {
        throw UpgradeError(
          .foreign,
          "the directory isn't a database, but contains some; give one of them: \(inner.joined(separator: ", "))",
          path: path)
      }
      throw UpgradeError(
        .foreign,
        "the directory isn't a Couchbase Lite database: it has no db.sqlite3 and no db.forest.N; give a NAME.cblite2 directory or "
          + "a NAME.cblite file", path: path)
    }
    storage = .sqlite
    forestNames = []
    file = path + "/db.sqlite3"
    attachmentDirectories = [path + "/attachments"]
  }

  private static let forestPrefix = "db.forest"

  /// Opens the database. `scratch` is a directory for temporary files. Throws an `UpgradeError` that says what
  /// is there, if it isn't a 1.x database that can be read.
  func open(key: UserKey?, scratch: String) throws -> any Source {
    switch storage {
    case .sqlite:
      do {
        return try SQLiteSource(self, SQLiteSourceFile(self, key: key, scratch: scratch))
      } catch let error as SQLiteError { throw SQLiteSource.error(error, self) }
    case .forestDB: return try ForestDBSource(self, key: key, scratch: scratch)
    }
  }

  /// The files that tell whether somebody writes to the database.
  var watched: [String] {
    switch storage {
    case .sqlite: ["", "-wal", "-journal"].map { file + $0 }
    case .forestDB: mainFiles
    }
  }

  /// The files without which the rest isn't a database. They are removed first.
  package var mainFiles: [String] {
    switch storage {
    case .sqlite: file == path ? [] : [file]
    case .forestDB: forestNames.map { path + "/" + $0 }
    }
  }

  static func laterVersion(_ path: String) -> UpgradeError {
    UpgradeError(
      .laterVersion,
      "this is a database of Couchbase Lite 2 or later, which needs no upgrade; import it with `touchstone import`",
      path: path)
  }

  /// Returns the path without a 1.x suffix.
  package static func withoutSuffix(_ path: String) -> String {
    for suffix in suffixes where path.hasSuffix(suffix) { return String(path.dropLast(suffix.count)) }
    return path
  }

  /// The existing files and directories of the database. The SQLite file is first.
  package var parts: [String] {
    if file != path || storage == .forestDB { return [path] }
    return ([file] + ["-wal", "-shm", "-journal"].map { file + $0 } + attachmentDirectories.prefix(2))
      .filter { Self.kind($0) != nil }
  }

  /// Whether a path, at which nothing has to be yet, is inside a directory of the database.
  package func contains(_ path: String) -> Bool {
    let directories = parts.filter { Self.kind($0) == S_IFDIR }.compactMap(Self.identity)
    guard !directories.isEmpty else { return false }
    var place = path
    // Links are followed: what is compared are the directories themselves.
    while true {
      if let found = Self.identity(place), directories.contains(where: { $0 == found }) { return true }
      let above = Self.parent(of: place)
      guard above != place else { return false }
      place = above
    }
  }

  private static func identity(_ path: String) -> [UInt64]? {
    var status = stat()
    return stat(path, &status) == 0 ? [UInt64(status.st_dev), UInt64(status.st_ino)] : nil
  }

  /// Returns the file type at a path, or nil if there is no file.
  static func kind(_ path: String) -> mode_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
  }

  static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// The names in a directory, sorted; none if it can't be read.
  static func names(in directory: String) -> [String] {
    ((try? FileTree.names(in: directory)) ?? []).sorted()
  }
}
