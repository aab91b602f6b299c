import Foundation
import TestSupport
import Testing
import Touchstone

@Suite("Moving and deleting databases in a folder") struct DatabaseFolderMovingTests {
  @Test("a moved database has all it had, under its new name", arguments: someEngines)
  func moving(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    try fill(try folder.open("a"), "first")
    try folder.move("a", to: "b/c")
    try expect(folder.names(), equals: ["b/c"])
    try expect(marker(of: try folder.openExisting("b/c")), equals: "first")
    try fill(try folder.open("a"), "second")
    try expect(databaseCode { try folder.move("a", to: "b/c") }, equals: .alreadyExists)
    try expect(databaseCode { try folder.move("a", to: "a") }, equals: .alreadyExists)
    try expect(databaseCode { try folder.move("x", to: "y") }, equals: .notFound)
    try expect(marker(of: try folder.openExisting("a")), equals: "second")
    try expect(marker(of: try folder.openExisting("b/c")), equals: "first")
    try expectNoLeftovers(directory.path, ["a.touchstone", "b%2Fc.touchstone"])
  }

  @Test("an open database is neither moved nor deleted", arguments: [EngineName.sqlite, .lmdb])
  func open(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    let database = try folder.open("a")
    func expectInUse() throws {
      try expect(databaseCode { try folder.move("a", to: "b") }, equals: .inUse)
      try expect(databaseCode { try folder.delete("a") }, equals: .inUse)
      try expect(directory.names(), equals: ["a.touchstone"])
    }
    try expectInUse()
    try database.close()
    let child = try startChild(.database, "folder", "hold", directory.path, "a", engine.rawValue)
    try child.waitForOutput()
    try expectInUse()
    child.kill()
    try child.wait()
    try folder.move("a", to: "b")
    try folder.delete("b")
    try expect(directory.names(), equals: [])
  }

  @Test("files of others, and what an interrupted creation left, are told apart") func others() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path)
    let manager = FileManager.default
    try fill(try folder.open("a"), "first")
    for name in ["foreign", "unfinished", "empty"] {
      try manager.createDirectory(
        atPath: directory.file(name + ".touchstone"), withIntermediateDirectories: false)
    }
    _ = manager.createFile(atPath: directory.file("foreign.touchstone/thesis.txt"), contents: Data([1]))
    for name in ["lock", "data-1.sqlite", "key.json"] {
      _ = manager.createFile(atPath: directory.file("unfinished.touchstone/" + name), contents: Data([1]))
    }
    _ = manager.createFile(atPath: directory.file("file.touchstone"), contents: Data([1]))
    try expect(folder.names(), equals: ["a"])
    for name in ["foreign", "file"] {
      try expect(databaseCode { try folder.move("a", to: name) }, equals: .alreadyExists)
      try expect(databaseCode { try folder.delete(name) }, equals: .notADatabase)
      try expect(databaseCode { try folder.install(name, from: directory.file("a")) }, equals: .alreadyExists)
      try expect(databaseCode { try folder.replace(name, withDatabase: "a") }, equals: .alreadyExists)
    }
    try folder.move("a", to: "unfinished")
    try folder.move("unfinished", to: "empty")
    try expect(marker(of: try folder.openExisting("empty")), equals: "first")
    try expect(
      directory.names(), equals: ["empty.touchstone", "file.touchstone", "foreign.touchstone"])
    expect(manager.fileExists(atPath: directory.file("foreign.touchstone/thesis.txt")))
  }

  @Test("a symbolic link to a database is moved, and deleted with the database") func links() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("f"))
    let elsewhere = try DatabaseFolder(directory.file("elsewhere"))
    try fill(try elsewhere.open("real"), "first")
    try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: try folder.path(of: "a"), withDestinationPath: try elsewhere.path(of: "real"))
    try expect(folder.names(), equals: ["a"])
    let database = try folder.open("a")
    try expect(elsewhere.open("real").engine === database.engine)
    try expect(databaseCode { try folder.move("a", to: "b") }, equals: .inUse)
    try folder.close()
    try elsewhere.close()
    try folder.move("a", to: "b")
    try expect(elsewhere.names(), equals: ["real"])
    try expect(marker(of: try folder.openExisting("b")), equals: "first")
    try makeDatabase(.lmdb, at: directory.file("new"), "second")
    try folder.replace("b", with: directory.file("new"))
    try expect(marker(of: try elsewhere.openExisting("real")), equals: "second")
    try expectNoLeftovers(elsewhere.path, ["real.touchstone"])
    try folder.delete("b")
    try expect(directory.names("f"), equals: [])
    try expect(directory.names("elsewhere"), equals: [])
  }
}
