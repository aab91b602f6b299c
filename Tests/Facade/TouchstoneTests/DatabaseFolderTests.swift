import Foundation
import TestSupport
import Testing

@testable import Touchstone

@Suite("A folder of databases") struct DatabaseFolderTests {
  @Test("the name of a new database is synced before a commit at full durability", arguments: someEngines)
  func syncedName(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let child = try startChild(.database, ["folder", "make", directory.path, "a", engine.rawValue])
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    expect(child.outputText, equals: "synced\n")
  }

  @Test("makes a database and opens it again, with the options of the folder", arguments: someEngines)
  func opening(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("data/databases"), options: try options(engine))
    try expect(folder.names(), equals: [])
    expect(!folder.exists("notes"))
    try expect(databaseCode { _ = try folder.openExisting("notes") }, equals: .notFound)
    try expect(directory.names(), equals: [])
    var database = try folder.open("notes")
    expect(database.name, equals: "notes")
    expect(database.engineName, equals: engine)
    try expect(database.path, equals: folder.path(of: "notes"))
    try database.save("a", ["n": 1])
    try database.close()
    expect(folder.exists("notes"))
    database = try folder.openExisting("notes")
    try expect(database.document("a")?["n"].int, equals: 1)
    try database.close()
    var created = folder.options
    created.creation = .createNew
    try expect(databaseCode { _ = try folder.open("notes", options: created) }, equals: .alreadyExists)
    try folder.delete("notes")
    try expect(directory.names("data/databases"), equals: [])
    try expect(databaseCode { try folder.delete("notes") }, equals: .notFound)
  }

  @Test("two opens of a name share one engine, also through two folders", arguments: someEngines)
  func sharing(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: directory.path)
    let other = try DatabaseFolder(directory.file("link/"), options: try options(engine))
    let databases = [try folder.open("a/b"), try folder.open("a/b"), try other.open("a/b")]
    expect(databases.allSatisfy { $0.engine === databases[0].engine && $0.name == "a/b" })
    try databases[0].save("x", ["n": 1])
    try expect(databases[2].document("x")?["n"].int, equals: 1)
    try folder.close()
    try expect(databaseCode { _ = try databases[1].document("x") }, equals: .closed)
    try expect(databases[2].document("x")?["n"].int, equals: 1)
    try expect(databaseCode { try folder.delete("a/b") }, equals: .inUse)
    try other.close()
    // The folders can still be used.
    try folder.delete("a/b")
  }

  @Test("lists its databases in the order of their bytes, and nothing else") func listing() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path)
    let names = ["b", "B", "a/b", "a%2Fb", "a", "cafe\u{301}", "caf\u{e9}", "100%", "z", "\u{301}/"]
    for name in names { try folder.open(name).close() }
    let manager = FileManager.default
    for name in ["unfinished.touchstone", ".hidden.touchstone", "x%2f.touchstone", "other"] {
      try manager.createDirectory(atPath: directory.file(name), withIntermediateDirectories: false)
      // An unfinished database has no description.
      if name != "unfinished.touchstone" {
        _ = manager.createFile(atPath: directory.file(name) + "/database.json", contents: Data())
      }
    }
    _ = manager.createFile(atPath: directory.file("file.touchstone"), contents: Data())
    // Read as UTF-8 with a replacement, this is another name, which exists.
    try folder.open("\u{fffd}").close()
    let invalid = Array(directory.path.utf8) + Array("/".utf8) + [0xFF] + Array(".touchstone\0".utf8)
    expect(invalid.withUnsafeBytes { mkdir($0.bindMemory(to: CChar.self).baseAddress!, 0o755) }, equals: 0)
    let found = try folder.names()
    let expected = (names + ["\u{fffd}"]).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    expect(found.map { Array($0.utf8) }, equals: expected.map { Array($0.utf8) })
    for name in found { expect(folder.exists(name)) }
    expect(invalid.withUnsafeBytes { rmdir($0.bindMemory(to: CChar.self).baseAddress!) }, equals: 0)
  }

  @Test("closes all databases, and says which it couldn't close") func closing() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path)
    let busy = try folder.open("busy")
    let idle = try folder.open("idle")
    try busy.inBatch {
      let error = try thrown(DatabaseFolder.CloseError.self) { try folder.close() }
      expect(error?.failures.map(\.name), equals: ["busy"])
      expect(error?.failures.first.map { ($0.error as? DatabaseError)?.code == .inUse }, equals: true)
      expect(error?.description.contains("busy"), equals: true)
      try busy.save("a", [:])
    }
    try expect(databaseCode { _ = try idle.documentCount }, equals: .closed)
    try expect(busy.documentCount, equals: 1)
    try folder.close()
    try expect(databaseCode { _ = try busy.documentCount }, equals: .closed)
    try folder.close()
  }

  @Test("is used by many threads at once", arguments: [EngineName.sqlite, .lmdb])
  func threads(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("new"), options: try options(engine))
    try onThreads(8) { thread in
      do {
        for round in 0..<10 {
          let database = try folder.open("n\(round % 3)")
          try database.save("\(thread)-\(round)", [:])
          _ = try folder.names()
          try database.close()
        }
      } catch { Issue.record("\(error)") }
    }
    try expect(folder.names(), equals: ["n0", "n1", "n2"])
    let counts = try folder.names().map { try folder.openExisting($0).documentCount }
    expect(counts.reduce(0, +), equals: 80)
    try folder.close()
  }

  @Test("opens a database for reading only, and makes none") func readOnly() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("f"), options: DatabaseOptions(isReadOnly: true))
    try expect(databaseCode { _ = try folder.open("a") }, equals: .notFound)
    try expect(directory.names(), equals: [])
    try folder.open("a", options: DatabaseOptions()).close()
    let database = try folder.open("a")
    expect(database.isReadOnly)
    try folder.close()
  }

  @Test("upgrades a 1.x database of the same name if the options say so") func upgrading() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: DatabaseOptions(upgrade: UpgradeOptions()))
    _ = try makeLegacyDatabase(.v13, "catalog", in: directory.path)
    let database = try folder.openExisting("catalog")
    try expect(database.documentCount > 0)
    try expect(folder.names(), equals: ["catalog"])
    try folder.close()
  }

  @Test("has a place by the convention of the platform") func defaultPath() throws {
    func path(_ program: String?, _ dataHome: String?, _ home: String?) -> String? {
      DatabaseFolder.defaultPath(program: program, dataHome: dataHome, home: home)
    }
    expect(path("/usr/bin/notes", "/data", "/home/a"), equals: "/data/notes")
    expect(path("notes", "/data/", nil), equals: "/data/notes")
    expect(path("./notes", nil, "/home/a"), equals: "/home/a/.local/share/notes")
    // A relative path isn't allowed there.
    expect(path("notes", "data", "/home/a/"), equals: "/home/a/.local/share/notes")
    expect(path("notes", nil, nil) == nil)
    expect(path("notes", nil, "home") == nil)
    for program in [nil, "", "/", "..", "/bin/.."] {
      expect(path(program, "/data", nil), equals: "/data/touchstone")
    }
    try expect(DatabaseFolder.defaultPath.hasPrefix("/"))
    try expect(DatabaseFolder().path, equals: DatabaseFolder.defaultPath)
  }

  @Test("has an absolute path without a slash at the end") func paths() throws {
    try expect(DatabaseFolder("/a/b//").path, equals: "/a/b")
    try expect(DatabaseFolder("/").path(of: "x"), equals: "/x.touchstone")
    try expect(DatabaseFolder("a").path, equals: FileManager.default.currentDirectoryPath + "/a")
    try expect(databaseCode { _ = try DatabaseFolder("") }, equals: .invalidName)
    try expect(databaseCode { _ = try DatabaseFolder("a\0b") }, equals: .invalidName)
    let directory = TemporaryDirectory()
    _ = FileManager.default.createFile(atPath: directory.file("file"), contents: Data())
    let folder = try DatabaseFolder(directory.file("file"))
    #expect(throws: (any Error).self) { try folder.names() }
    #expect(throws: (any Error).self) { try folder.open("a") }
    expect(!folder.exists("a"))
  }
}
