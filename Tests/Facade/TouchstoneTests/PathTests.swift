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
}
