import Foundation
import TestSupport
import Testing

@testable import Touchstone

@Suite("A folder of databases") struct DatabaseFolderTests {
  @Test("the name of a new database is synced before a commit at full durability", arguments: someEngines)
  func syncedName(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let child = try startChild(["folder", "make", directory.path, "a", engine.rawValue])
    #expect(try child.wait() == .exited(0), "\(child.outputText) \(child.errorText)")
    #expect(child.outputText == "synced\n")
  }

  @Test("makes a database and opens it again, with the options of the folder", arguments: someEngines)
  func opening(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("data/databases"), options: try options(engine))
    #expect(try folder.names() == [])
    #expect(!folder.exists("notes"))
    #expect(try databaseCode { _ = try folder.openExisting("notes") } == .notFound)
    #expect(try directory.names() == [])
    var database = try folder.open("notes")
    #expect(database.name == "notes")
    #expect(database.engineName == engine)
    #expect(try database.path == folder.path(of: "notes"))
    try database.save("a", ["n": 1])
    try database.close()
    #expect(folder.exists("notes"))
    database = try folder.openExisting("notes")
    #expect(try database.document("a")?["n"].int == 1)
    try database.close()
    var created = folder.options
    created.creation = .createNew
    #expect(try databaseCode { _ = try folder.open("notes", options: created) } == .alreadyExists)
    try folder.delete("notes")
    #expect(try directory.names("data/databases") == [])
    #expect(try databaseCode { try folder.delete("notes") } == .notFound)
  }

  @Test("two opens of a name share one engine, also through two folders", arguments: someEngines)
  func sharing(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("link"), withDestinationPath: directory.path)
    let other = try DatabaseFolder(directory.file("link/"), options: try options(engine))
    let databases = [try folder.open("a/b"), try folder.open("a/b"), try other.open("a/b")]
    #expect(databases.allSatisfy { $0.engine === databases[0].engine && $0.name == "a/b" })
    try databases[0].save("x", ["n": 1])
    #expect(try databases[2].document("x")?["n"].int == 1)
    try folder.close()
    #expect(try databaseCode { _ = try databases[1].document("x") } == .closed)
    #expect(try databases[2].document("x")?["n"].int == 1)
    #expect(try databaseCode { try folder.delete("a/b") } == .inUse)
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
    #expect(invalid.withUnsafeBytes { mkdir($0.bindMemory(to: CChar.self).baseAddress!, 0o755) } == 0)
    let found = try folder.names()
    let expected = (names + ["\u{fffd}"]).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    #expect(found.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
    for name in found { #expect(folder.exists(name)) }
    #expect(invalid.withUnsafeBytes { rmdir($0.bindMemory(to: CChar.self).baseAddress!) } == 0)
  }

  @Test("closes all databases, and says which it couldn't close") func closing() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path)
    let busy = try folder.open("busy")
    let idle = try folder.open("idle")
    try busy.inBatch {
      let error = try thrown(DatabaseFolder.CloseError.self) { try folder.close() }
      #expect(error?.failures.map(\.name) == ["busy"])
      #expect(error?.failures.first.map { ($0.error as? DatabaseError)?.code == .inUse } == true)
      #expect(error?.description.contains("busy") == true)
      try busy.save("a", [:])
    }
    #expect(try databaseCode { _ = try idle.documentCount } == .closed)
    #expect(try busy.documentCount == 1)
    try folder.close()
    #expect(try databaseCode { _ = try busy.documentCount } == .closed)
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
    #expect(try folder.names() == ["n0", "n1", "n2"])
    let counts = try folder.names().map { try folder.openExisting($0).documentCount }
    #expect(counts.reduce(0, +) == 80)
    try folder.close()
  }

  @Test("opens a database for reading only, and makes none") func readOnly() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("f"), options: DatabaseOptions(isReadOnly: true))
    #expect(try databaseCode { _ = try folder.open("a") } == .notFound)
    #expect(try directory.names() == [])
    try folder.open("a", options: DatabaseOptions()).close()
    let database = try folder.open("a")
    #expect(database.isReadOnly)
    try folder.close()
  }

  @Test("upgrades a 1.x database of the same name if the options say so") func upgrading() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: DatabaseOptions(upgrade: UpgradeOptions()))
    _ = try makeLegacyDatabase(.v13, "catalog", in: directory.path)
    let database = try folder.openExisting("catalog")
    #expect(try database.documentCount > 0)
    #expect(try folder.names() == ["catalog"])
    try folder.close()
  }

  @Test("has a place by the convention of the platform") func defaultPath() throws {
    func path(_ program: String?, _ dataHome: String?, _ home: String?) -> String? {
      DatabaseFolder.defaultPath(program: program, dataHome: dataHome, home: home)
    }
    #expect(path("/usr/bin/notes", "/data", "/home/a") == "/data/notes")
    #expect(path("notes", "/data/", nil) == "/data/notes")
    #expect(path("./notes", nil, "/home/a") == "/home/a/.local/share/notes")
    // A relative path isn't allowed there.
    #expect(path("notes", "data", "/home/a/") == "/home/a/.local/share/notes")
    #expect(path("notes", nil, nil) == nil)
    #expect(path("notes", nil, "home") == nil)
    for program in [nil, "", "/", "..", "/bin/.."] {
      #expect(path(program, "/data", nil) == "/data/touchstone")
    }
    #expect(try DatabaseFolder.defaultPath.hasPrefix("/"))
    #expect(try DatabaseFolder().path == DatabaseFolder.defaultPath)
  }

  @Test("has an absolute path without a slash at the end") func paths() throws {
    #expect(try DatabaseFolder("/a/b//").path == "/a/b")
    #expect(try DatabaseFolder("/").path(of: "x") == "/x.touchstone")
    #expect(try DatabaseFolder("a").path == FileManager.default.currentDirectoryPath + "/a")
    #expect(try databaseCode { _ = try DatabaseFolder("") } == .invalidName)
    #expect(try databaseCode { _ = try DatabaseFolder("a\0b") } == .invalidName)
    let directory = TemporaryDirectory()
    _ = FileManager.default.createFile(atPath: directory.file("file"), contents: Data())
    let folder = try DatabaseFolder(directory.file("file"))
    #expect(throws: (any Error).self) { try folder.names() }
    #expect(throws: (any Error).self) { try folder.open("a") }
    #expect(!folder.exists("a"))
  }
}
