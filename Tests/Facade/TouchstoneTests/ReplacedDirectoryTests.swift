import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// Somebody restores a copy under an open database, or removes its directory and makes another database there. What the open one does by
/// its path must leave that one alone.
@Suite struct ReplacedDirectoryTests {
  @Test(arguments: sharedEngines) func theOtherDatabaseStaysAsItIs(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    let made = try Database.open("test", in: directory.path, options: options)
    try made.save("a", ["n": 1])
    let path = made.path
    try made.close()
    options.creation = .openExisting
    let database = try Database.open("test", in: directory.path, options: options)
    // It has only read, so some engines have no writer yet.
    try expect(database.document("a")?["n"].int, equals: 1)
    let old = path + ".old"
    try FileManager.default.moveItem(atPath: path, toPath: old)
    try FileManager.default.copyItem(atPath: old, toPath: path)
    let before = try contents(path)
    // An engine that has its file open goes on with that.
    do { try database.save("b", ["name": "x"]) } catch let error as StorageError {
      expect(error.code, equals: .notFound)
    }
    try expect(storageCode { try database.compact() }, equals: .notFound)
    try expect(contents(path), equals: before)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: old, toPath: path)
    try database.save("c", ["name": "y"])
    try database.compact()
    try expect(database.check(deep: true).map(\.description), equals: [])
    try database.close()
  }

  /// The files below a directory, with their bytes.
  private func contents(_ path: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: path) {
      found[name] = FileManager.default.contents(atPath: path + "/" + name) ?? Data()
    }
    return found
  }
}
