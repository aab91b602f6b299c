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
    #expect(FileManager.default.createFile(atPath: file, contents: Data([UInt8](repeating: 7, count: 32))))
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
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["file"])
    try database.close()
  }
}
