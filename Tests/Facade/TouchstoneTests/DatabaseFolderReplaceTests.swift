import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@Suite("Replacing databases in a folder") struct DatabaseFolderReplaceTests {
  private let directory = TemporaryDirectory()

  @Test(
    "the new database takes the place of the old one, with its blobs, from any engine to any",
    arguments: someEngines)
  func replacing(_ engine: EngineName) throws {
    let folder = try DatabaseFolder(directory.file("f"))
    let testKey = try key(of: .sqlcipher)
    func expectDatabase(_ text: String, _ engine: EngineName, hasBlob: Bool = true) throws {
      try expectNoLeftovers(folder.path)
      let database = try folder.openExisting("a", options: DatabaseOptions(key: try key(of: engine)))
      expect(database.engineName, equals: engine)
      try expect(marker(of: database, hasBlob: hasBlob), equals: text)
    }
    // Nothing is there at first.
    try makeDatabase(engine, at: directory.file("none"), "none", hasBlob: false)
    try folder.replace("a", with: directory.file("none"), key: testKey)
    try expectDatabase("none", engine, hasBlob: false)
    for other in someEngines {
      try makeDatabase(other, at: directory.file("\(other)"), "\(other)")
      try folder.replace("a", with: directory.file("\(other)"), key: testKey)
      try expectDatabase("\(other)", other)
      try folder.replace("a", with: directory.file("none"), key: testKey)
      try expectDatabase("none", engine, hasBlob: false)
    }
    let names = try DatabaseFolder(directory.path, options: DatabaseOptions(key: testKey))
    let last = try #require(someEngines.last)
    try folder.replace("a", withDatabase: "\(last)", in: names)
    try expectDatabase("\(last)", last)
    let database = try folder.openExisting("a", options: DatabaseOptions(key: try key(of: last)))
    let original = try names.openExisting("\(last)", options: try options(last))
    try expect(database.previousPrivateUUID, equals: original.privateUUID)
    try folder.close()
    try names.close()
  }

  @Test("a database of Couchbase Lite replaces one") func couchbaseLite() throws {
    let folder = try DatabaseFolder(directory.file("f"))
    try fill(try folder.open("a"), "first")
    try folder.replace("a", with: try makeLegacyDatabase(.v10, "old", in: directory.path))
    try expect(folder.openExisting("a").documentCount, equals: 60)
    try folder.close()
    try makeDatabase(.lmdb, at: directory.file("new"), "second")
    let new = try Database.open(directory.file("new"))
    try new.exportCBLite2(to: directory.file("new.cblite2"))
    try new.close()
    try folder.replace("a", with: directory.file("new.cblite2"), engine: .lmdb)
    let database = try folder.openExisting("a")
    expect(database.engineName, equals: .lmdb)
    try expect(database.document("marker")?["marker"].string, equals: "second")
    try database.close()
    try expectNoLeftovers(folder.path)
  }

  @Test("an open database isn't replaced, whoever has it open", arguments: [EngineName.sqlite, .lmdb])
  func inUse(_ engine: EngineName) throws {
    let folder = try DatabaseFolder(directory.file("f"), options: try options(engine))
    try fill(try folder.open("a"), "first")
    try fill(try folder.open("b"), "second")
    func expectInUse() throws {
      try expect(databaseCode { try folder.replace("a", withDatabase: "b") }, equals: .inUse)
      try expect(directory.names("f"), equals: ["a.touchstone", "b.touchstone"])
    }
    let database = try folder.open("a")
    try expectInUse()
    try database.close()
    let reader = try folder.open("a", options: DatabaseOptions(isReadOnly: true))
    try expectInUse()
    try reader.close()
    let child = try startChild(.database, "folder", "hold", folder.path, "a", engine.rawValue)
    try child.waitForOutput()
    try expectInUse()
    child.kill()
    try child.wait()
    // The source may be open.
    let source = try folder.open("b")
    try folder.replace("a", withDatabase: "b")
    try source.close()
    try expect(marker(of: try folder.open("a")), equals: "second")
    try expectNoLeftovers(folder.path, ["a.touchstone", "b.touchstone"])
  }

  @Test("opens in this and in another process meanwhile wait or are refused, and find one of both")
  func openedMeanwhile() throws {
    let folder = try DatabaseFolder(directory.file("f"), options: try options(.sqlite))
    try fill(try folder.open("a"), "first")
    try fill(try folder.open("b"), "second")
    let children = Lock<[ChildProcess]>([])
    var isFirst = true
    try folder.replace(
      "a", withDatabase: "b",
      progress: { _ in
        guard isFirst else { return }
        isFirst = false
        try expect(databaseCode { _ = try folder.open("a") }, equals: .inUse)
        try expect(databaseCode { try folder.delete("a") }, equals: .inUse)
        try expect(databaseCode { try folder.replace("a", withDatabase: "b") }, equals: .inUse)
        try expect(databaseCode { try folder.replace("b", withDatabase: "a") }, equals: .inUse)
        try expect(folder.names(), equals: ["a", "b"])
        let child = try startChild(.database, "folder", "hold", folder.path, "a", "sqlite")
        children.withLock { $0.append(child) }
        usleep(100_000)
        expect(child.outputText, equals: "")
      })
    let child = try #require(children.withLock { $0.first })
    try child.waitForOutput()
    expect(child.outputText, equals: "open\n")
    // It has the new one open.
    try expect(marker(of: try folder.open("a")), equals: "second")
    child.kill()
    try child.wait()
    try expectNoLeftovers(folder.path, ["a.touchstone", "b.touchstone"])
  }

  @Test("a database doesn't replace itself, nor what is inside it") func itself() throws {
    let folder = try DatabaseFolder(directory.file("f"))
    try fill(try folder.open("a"), "first")
    let path = try folder.path(of: "a")
    let inside = path + "/Attachments/b"
    // It can't be made there, but somebody may have moved it.
    try makeDatabase(.sqlite, at: directory.file("b"), "inside")
    try FileManager.default.moveItem(atPath: directory.file("b.touchstone"), toPath: inside + ".touchstone")
    let link = directory.file("link.touchstone")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    for source in [path, path + "/", String(path.dropLast(11)), link, inside] {
      try expect(databaseCode { try folder.replace("a", with: source) }, equals: .invalidSource)
    }
    try expect(databaseCode { try folder.replace("a", withDatabase: "a") }, equals: .invalidSource)
    try FileManager.default.removeItem(atPath: inside + ".touchstone")
    try expect(marker(of: try folder.openExisting("a")), equals: "first")
    try expectNoLeftovers(folder.path)
  }

  @Test("a replacement that fails leaves the old database as it is") func failing() throws {
    let folder = try DatabaseFolder(directory.file("f"))
    try fill(try folder.open("a"), "first")
    try makeDatabase(.sqlcipher, at: directory.file("secret"), "second")
    struct Stop: Error {}
    try expect(databaseCode { try folder.replace("a", with: directory.file("missing")) }, equals: .notFound)
    try expect(databaseCode { try folder.replace("a", with: directory.file("secret")) }, equals: .keyRequired)
    var count = 0
    #expect(throws: Stop.self) {
      try folder.replace("a", with: directory.file("secret"), key: try key(of: .sqlcipher)) { _ in
        count += 1
        if count == 3 { throw Stop() }
      }
    }
    try expectNoLeftovers(folder.path)
    try expect(marker(of: try folder.openExisting("a")), equals: "first")
  }

  @Test(
    "a damaged database is replaced, and one of a later release isn't", arguments: [EngineName.sqlite, .lmdb])
  func damaged(_ engine: EngineName) throws {
    let folder = try DatabaseFolder(directory.file("f"), options: try options(engine))
    try makeDatabase(engine, at: directory.file("b"), "second")
    for text in ["", "{}", "{\"version\":1}", "{\"engine\":\"x\",\"file\":\"data-1.x\",\"version\":1}"] {
      try fill(try folder.open("a"), "first")
      let description = URL(fileURLWithPath: try folder.path(of: "a") + "/database.json")
      try Data(text.utf8).write(to: description)
      try expect(folder.names(), equals: ["a"])
      try folder.replace("a", with: directory.file("b"))
      try expectNoLeftovers(folder.path)
      try expect(marker(of: try folder.open("a")), equals: "second")
      try Data(text.utf8).write(to: description)
      try folder.delete("a")
      try expect(directory.names("f"), equals: [])
    }
    try fill(try folder.open("a"), "first")
    let description = URL(fileURLWithPath: try folder.path(of: "a") + "/database.json")
    try Data("{\"version\":9}".utf8).write(to: description)
    try expect(
      databaseCode { try folder.replace("a", with: directory.file("b")) }, equals: .unsupportedVersion)
    try expect(directory.names("f"), equals: ["a.touchstone"])
  }

  @Test("the source may be on another file system, and so may the folder")
  func fileSystems() throws {
    let memory = "/dev/shm/touchstone-\(UUID())"
    guard
      (try? FileManager.default.createDirectory(atPath: memory, withIntermediateDirectories: false)) != nil
    else { return }
    defer { try? FileManager.default.removeItem(atPath: memory) }
    let folders = [try DatabaseFolder(memory), try DatabaseFolder(directory.file("f"))]
    for (folder, other) in [(folders[0], folders[1]), (folders[1], folders[0])] {
      try fill(try other.open("b"), "second", documents: 10)
      try fill(try folder.open("a"), "first")
      try folder.replace("a", withDatabase: "b", in: other)
      try expect(marker(of: try folder.openExisting("a"), documents: 10), equals: "second")
      try folder.install("c", from: try other.path(of: "b"))
      try expect(marker(of: try folder.openExisting("c"), documents: 10), equals: "second")
      for name in try folder.names() { try folder.delete(name) }
      try other.delete("b")
      try expect(FileManager.default.contentsOfDirectory(atPath: folder.path), equals: [])
    }
  }

  @Test("a folder that can't be written stays as it is", .enabled(if: geteuid() != 0))
  func readOnlyFolder() throws {
    let folder = try DatabaseFolder(directory.file("f"))
    try fill(try folder.open("a"), "first")
    try makeDatabase(.sqlite, at: directory.file("b"), "second")
    let before = try directory.names("f/a.touchstone")
    for path in ["f", "f/a.touchstone"] { expect(chmod(directory.file(path), 0o555), equals: 0) }
    defer { for path in ["f", "f/a.touchstone"] { chmod(directory.file(path), 0o755) } }
    let operations: [() throws -> Void] = [
      { try folder.replace("a", with: directory.file("b")) }, { try folder.delete("a") },
      { try folder.move("a", to: "c") }, { try folder.install("c", from: directory.file("b")) },
    ]
    for operation in operations { try expect(storageCode(of: operation), equals: .permissionDenied) }
    try expect(folder.names(), equals: ["a"])
    try expect(directory.names("f/a.touchstone"), equals: before)
    let database = try folder.openExisting("a", options: DatabaseOptions(isReadOnly: true))
    try expect(marker(of: database), equals: "first")
  }
}
