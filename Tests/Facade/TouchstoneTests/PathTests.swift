import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@Suite("Paths of other files") struct PathTests {
  @Test("a path with a zero byte names no file, not even the one before the zero byte")
  func zeroBytes() throws {
    let directory = TemporaryDirectory()
    let file = directory.path + "/file"
    expect(FileManager.default.createFile(atPath: file, contents: Data([UInt8](repeating: 7, count: 32))))
    let path = file + "\0.jpg"
    let database = try Database.inMemory()
    let calls: [() throws -> Void] = [
      { _ = try Blob(contentsOfFile: path) }, { _ = try database.makeBlob(contentsOfFile: path) },
      { _ = try UserKey(contentsOfFile: path) }, { _ = try database.importCBLite2(path) },
      { _ = try database.exportCBLite2(to: directory.path + "/new\0.cblite2") },
    ]
    for call in calls {
      #expect { try call() } throws: { ($0 as? StorageError)?.code == .invalidArgument }
    }
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: ["file"])
    try database.close()
  }

  @Test("a path that is too long for the engine is refused, with both lengths, before anything is made")
  func longPath() throws {
    let directory = TemporaryDirectory()
    var parent = directory.path
    while parent.utf8.count < 500 { parent += "/" + String(repeating: "d", count: 120) }
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    let refused = try #require(throws: DatabaseError.self) {
      try Database.open(parent + "/db", options: DatabaseOptions(engine: .sqlite))
    }
    expect(refused.code == .invalidName && refused.message.contains("480 bytes"), "\(refused)")
    try expect(FileManager.default.contentsOfDirectory(atPath: parent), equals: [])

    // LMDB has no such limit, and what it has isn't converted.
    try Database.open(parent + "/db", options: DatabaseOptions(engine: .lmdb)).close()
    let kept = try #require(throws: DatabaseError.self) { try Database.convert(parent + "/db", to: .sqlite) }
    expect(kept.code, equals: .invalidName, "\(kept)")
    #expect {
      try Database.copy(parent + "/db", to: parent + "/copy", engine: .sqlite)
    } throws: {
      "\($0)".contains("480 bytes")
    }
    try expect(FileManager.default.contentsOfDirectory(atPath: parent), equals: ["db.touchstone"])
    let again = try Database.open(parent + "/db")
    expect(again.engineName, equals: .lmdb)
    try again.close()
  }

  @Test(
    "a database that is deleted through a link takes the link along, and a link to nothing is said to be one")
  func links() throws {
    let directory = TemporaryDirectory()
    try Database.open(directory.file("a")).close()
    let link = directory.file("link.touchstone")
    expect(symlink("a.touchstone", link), equals: 0)
    try Database.delete(directory.file("link"))
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])

    expect(symlink("nothing.touchstone", link), equals: 0)
    let error = try #require(throws: DatabaseError.self) { try Database.open(link) }
    expect(error.code == .notADatabase && error.message.contains("leads nowhere"), "\(error)")
  }

  @Test("a database isn't made inside the directory of another one, which would take it along")
  func inside() throws {
    let directory = TemporaryDirectory()
    let outer = directory.file("a.touchstone")
    try Database.open(outer).close()
    for make: (String) throws -> Void in [
      { try Database.open($0).close() }, { try Database.copy(outer, to: $0) },
      { try Database.convert(outer, to: .lmdb, at: $0) },
    ] {
      let error = try #require(throws: DatabaseError.self) { try make(outer + "/Attachments/b") }
      expect(error.code == .invalidName || error.code == .noParentDirectory, "\(error)")
      let direct = try #require(throws: DatabaseError.self) { try make(outer + "/b") }
      expect(direct.code, equals: .invalidName, "\(direct)")
    }
    try Database.open(outer).close()
  }
}
