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
    let child = try startChild("documents", "follow", "\(engine)", directory.path, hasInput: true)
    try child.waitForOutput()
    // Another process reads it: closing the file here would drop the engine's locks.
    let data = try runTool("sha256sum", database.engineFile)
    #expect(try databaseCode { try database.changeKey(new, key: new) } == .wrongKey)
    try database.changeKey(new, key: old)
    #expect(try runTool("sha256sum", database.engineFile) == data)
    #expect(try directory.names("test.touchstone").filter { $0.hasPrefix("key") } == ["key.json"])
    // Opens in this process need the new key too.
    #expect(
      try databaseCode { _ = try Database.open("test", in: directory.path, options: options) } == .wrongKey)
    options.key = nil
    #expect(
      try databaseCode { _ = try Database.open("test", in: directory.path, options: options) } == .keyRequired
    )
    options.key = new
    try Database.open("test", in: directory.path, options: options).close()
    // Those that are open go on, and compact.
    try same.save("b", ["n": 2])
    #expect(try same.contents(of: blob) == [1, 2, 3])
    child.endInput()
    #expect(try child.wait() == .exited(0), "\(child.outputText) \(child.errorText)")
    #expect(try database.document("after") != nil)
    try same.compact()
    try same.save("c", ["n": 3])
    #expect(try databaseCode { try same.changeKey(old, key: old) } == .wrongKey)
    try same.changeKey(old)
    try same.close()
    try database.close()
    options.key = old
    let opened = try Database.open("test", in: directory.path, options: options)
    #expect(try opened.documentCount == 4)
    #expect(try opened.check(deep: true) == [])
    try opened.close()
    #expect(try databaseCode { try opened.changeKey(new) } == .closed)
  }

  @Test("another process that has a database open compacts it after the key has changed", arguments: engines)
  func compactionElsewhere(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let new = try UserKey.passphrase("open sesame")
    let options = try options(engine, durability: .normal)
    try Database.open("test", in: directory.path, options: options).close()
    let child = try startChild("documents", "follow", "\(engine)", directory.path, hasInput: true)
    try child.waitForOutput()
    let database = try Database.open("test", in: directory.path, options: options)
    try database.changeKey(new, key: options.key)
    try database.close()
    // It compacts alone, with the data key that it holds.
    child.endInput()
    #expect(try child.wait() == .exited(0), "\(child.outputText) \(child.errorText)")
    var changed = options
    changed.key = new
    let opened = try Database.open("test", in: directory.path, options: changed)
    #expect(try opened.document("after") != nil)
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
      #expect(error?.code == .notEncrypted && error?.message.contains("Database.encrypt") == true)
    } else {
      #expect(try storageCode { try database.inBatch { try database.changeKey(new) } } == .nestedWrite)
      try database.changeKey(#require(options.key), key: options.key)
    }
    var reading = options
    reading.isReadOnly = true
    let reader = try Database.open("test", in: directory.path, options: reading)
    #expect(try databaseCode { try reader.changeKey(new) } == .readOnly)
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
    #expect(opening.count == 1)
  }
}
