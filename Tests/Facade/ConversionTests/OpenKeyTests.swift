import Encryption
import TestSupport
import Testing

@testable import Touchstone

/// The key of a database that is open.
@Suite("Keys of open databases") struct OpenKeyTests {
  private static let engines = [EngineName.sqlcipher, .lmdbEncrypted].filter(allEngines.contains)

  @Test("the key changes while the database is open here and in another process", arguments: engines)
  func changeKey(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let (old, new) = (try #require(try key(of: engine)), try UserKey.passphrase("open sesame"))
    var options = try options(engine, durability: .normal)
    let database = try Database.open("test", in: directory.path, options: options)
    let same = try Database.open("test", in: directory.path, options: options)
    try database.save("a", ["n": 1])
    let blob = try database.makeBlob([1, 2, 3])
    let child = try startChild(.database, "documents", "follow", "\(engine)", directory.path, hasInput: true)
    try child.waitForOutput()
    // Another process reads it: closing the file here would drop the engine's locks.
    let data = try runTool("sha256sum", database.engineFile)
    try expect(databaseCode { try database.changeKey(new, key: new) }, equals: .wrongKey)
    try database.changeKey(new, key: old)
    try expect(runTool("sha256sum", database.engineFile), equals: data)
    try expect(directory.names("test.touchstone").filter { $0.hasPrefix("key") }, equals: ["key.json"])
    // Opens in this process need the new key too.
    try expect(
      databaseCode { _ = try Database.open("test", in: directory.path, options: options) }, equals: .wrongKey)
    options.key = nil
    try expect(
      databaseCode { _ = try Database.open("test", in: directory.path, options: options) },
      equals: .keyRequired)
    options.key = new
    try Database.open("test", in: directory.path, options: options).close()
    // Those that are open go on, and compact.
    try same.save("b", ["n": 2])
    try expect(same.contents(of: blob), equals: [1, 2, 3])
    child.endInput()
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try expect(database.document("after") != nil)
    try same.compact()
    try same.save("c", ["n": 3])
    try expect(databaseCode { try same.changeKey(old, key: old) }, equals: .wrongKey)
    try same.changeKey(old)
    try same.close()
    try database.close()
    options.key = old
    let opened = try Database.open("test", in: directory.path, options: options)
    try expect(opened.documentCount, equals: 4)
    try expect(opened.check(deep: true), equals: [])
    try opened.close()
    try expect(databaseCode { try opened.changeKey(new) }, equals: .closed)
  }

  @Test("another process that has a database open compacts it after the key has changed", arguments: engines)
  func compactionElsewhere(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let new = try UserKey.passphrase("open sesame")
    let options = try options(engine, durability: .normal)
    try Database.open("test", in: directory.path, options: options).close()
    let child = try startChild(.database, "documents", "follow", "\(engine)", directory.path, hasInput: true)
    try child.waitForOutput()
    let database = try Database.open("test", in: directory.path, options: options)
    try database.changeKey(new, key: options.key)
    try database.close()
    // It compacts alone, with the data key that it holds.
    child.endInput()
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    var changed = options
    changed.key = new
    let opened = try Database.open("test", in: directory.path, options: changed)
    try expect(opened.document("after") != nil)
    try opened.close()
  }

  @Test("a plain database, a batch and a database for reading only are refused", arguments: allEngines)
  func refusals(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let new = try UserKey.random()
    let options = try options(engine)
    let database = try Database.open("test", in: directory.path, options: options)
    if options.key == nil {
      let error = try thrown(DatabaseError.self) { try database.changeKey(new) }
      expect(error?.code == .notEncrypted && error?.message.contains("Database.encrypt") == true)
    } else {
      try expect(storageCode { try database.inBatch { try database.changeKey(new) } }, equals: .nestedWrite)
      try database.changeKey(#require(options.key), key: options.key)
    }
    var reading = options
    reading.isReadOnly = true
    let reader = try Database.open("test", in: directory.path, options: reading)
    try expect(databaseCode { try reader.changeKey(new) }, equals: .readOnly)
    try reader.close()
    try database.close()
  }

  @Test("threads that change the key do so one after the other", arguments: engines)
  func threads(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let options = try options(engine)
    let database = try Database.open("test", in: directory.path, options: options)
    let keys = (0..<4).map { number in
      (try? UserKey.raw([UInt8](repeating: UInt8(number), count: 32)))
    }
    try onThreads(4) { number in
      for _ in 0..<10 {
        if let key = keys[number] { try? database.changeKey(key) }
        if number == 0 { try? database.compact() }
      }
    }
    try database.close()
    let opening = keys.compactMap { $0 }.filter { key in
      var options = options
      options.key = key
      return (try? Database.open("test", in: directory.path, options: options).close()) != nil
    }
    expect(opening.count, equals: 1)
  }
}
