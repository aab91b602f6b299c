import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@Suite("A database's files") struct DatabaseFilesTests {
  @Test("paths and names of indexes are told apart by their bytes", arguments: someEngines)
  func canonicallyEqualNames(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let names = ["caf\u{e9}", "cafe\u{301}"]
    let opened = try names.map { try Database.open($0, in: directory.path, options: options(engine)) }
    for (number, database) in opened.enumerated() {
      try database.save("a", ["n": .int(Int64(number))])
      for (name, property) in zip(names, ["n", "m"]) { try database.createIndex(name, on: [property]) }
      try database.deleteIndex(names[0])
      try expect(database.indexes.map { Array($0.name.utf8) }, equals: [Array(names[1].utf8)])
      try expect(database.query("SELECT RAW n FROM _ WHERE m IS MISSING").run().count, equals: 1)
      try expect(database.checkIntegrity(), equals: [])
    }
    for database in opened { try database.close() }
  }

  @Test("what was saved is there after reopening, with the engine that made it", arguments: someEngines)
  func reopening(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    var database = try Database.open("travel", in: directory.path, options: options)
    let (publicUUID, privateUUID) = (database.publicUUID, database.privateUUID)
    try database.save("a", ["n": 1])
    try database.delete("a")
    try database.save("b", ["n": 2])
    try database.close()
    // Another engine in the options is for new databases only.
    options.engine = nil
    database = try Database.open(directory.path + "/travel.touchstone", options: options)
    expect(database.engineName, equals: engine)
    expect(database.name, equals: "travel")
    expect(database.publicUUID, equals: publicUUID)
    expect(database.privateUUID, equals: privateUUID)
    try expect(database.document("b")?["n"].int, equals: 2)
    try expect(database.lastSequence, equals: 3)
    try expect(database.checkIntegrity(), equals: [])
    try database.delete()
    expect(!Database.exists("travel", in: directory.path))
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }

  @Test("two opens of a path share one engine", arguments: someEngines)
  func sharing(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let first = try Database.open("a", in: directory.path, options: try options(engine))
    let second = try Database.open(directory.path + "/a", options: try options(engine))
    expect(first.engine === second.engine)
    try first.save("x", ["n": 1])
    try expect(second.document("x")?["n"].int, equals: 1)
    try expect(databaseCode { try Database.delete("a", in: directory.path) }, equals: .inUse)
    try first.close()
    try expect(databaseCode { _ = try first.document("x") }, equals: .closed)
    try first.close()
    try expect(second.document("x")?["n"].int, equals: 1)
    try second.close()
    try Database.delete("a", in: directory.path)
  }

  @Test("paths are told apart by their bytes")
  func normalizedPaths() throws {
    let directory = TemporaryDirectory()
    let composed = try Database.open("caf\u{e9}", in: directory.path)
    let decomposed = try Database.open("cafe\u{301}", in: directory.path)
    try composed.save("x", ["n": 1])
    expect(composed.engine !== decomposed.engine)
    try expect(decomposed.document("x") == nil)
    expect(Array(decomposed.name.utf8), equals: Array("cafe\u{301}".utf8))
    // A combining mark behind the slash makes one Character of both.
    let marked = try Database.open(directory.path + "/\u{301}x")
    expect(Array(marked.name.utf8), equals: Array("\u{301}x".utf8))
    for database in [composed, decomposed, marked] { try database.delete() }
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }

  @Test("open existing, create new, and what isn't there", arguments: someEngines)
  func creation(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    options.creation = .openExisting
    try expect(
      databaseCode { _ = try Database.open("a", in: directory.path, options: options) }, equals: .notFound)
    expect(!FileManager.default.fileExists(atPath: directory.path + "/a.touchstone"))
    options.creation = .createNew
    try Database.open("a", in: directory.path, options: options).close()
    try expect(
      databaseCode { _ = try Database.open("a", in: directory.path, options: options) },
      equals: .alreadyExists)
    try expect(databaseCode { try Database.delete("b", in: directory.path) }, equals: .notFound)
    try expect(
      databaseCode { _ = try Database.open("", in: directory.path, options: options) }, equals: .invalidName)
    options.engine = "no such engine"
    try expect(
      databaseCode { _ = try Database.open("c", in: directory.path, options: options) },
      equals: .unknownEngine)
  }

  @Test("an engine that this build doesn't have is an error that says how to get it")
  func unbuiltEngine() throws {
    for (name, need) in [(EngineName.wiredtiger, "libwiredtiger-dev"), (.rocksdb, "librocksdb-dev")]
    where !Engines.names.contains(name) {
      let error = try #require(throws: DatabaseError.self) { try Engines.type(name) }
      expect(
        error.code == .unknownEngine && error.message.hasPrefix("this build has no \(name): "), "\(error)")
      expect(error.message.contains(need), "\(error)")
    }
  }

  @Test("who waits to make a database, or to convert it, opens what another process has made meanwhile")
  func madeMeanwhile() throws {
    let directory = TemporaryDirectory()
    let path = directory.file("test.touchstone")
    let made = try Database.open("made", in: directory.path, options: try options(.sqlite))
    try made.save("x", ["n": 1])
    try made.close()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    // The other process: it holds the lock alone while it makes the database, then shared as long as it has it open.
    let other = open(path + "/lock", O_RDWR | O_CREAT, 0o644)
    defer { close(other) }
    func opened(_ options: DatabaseOptions, while work: () throws -> Void) throws {
      expect(flock(other, LOCK_EX), equals: 0)
      let outcome = Lock<Result<Int?, any Error>?>(nil)
      let done = CountingSemaphore()
      Thread.detachNewThread {
        let result = Result {
          let database = try Database.open(path, options: options)
          defer { try? database.close() }
          return try database.document("x")?["n"].int.map { Int($0) }
        }
        outcome.withLock { $0 = result }
        done.signal()
      }
      usleep(100_000)
      try work()
      expect(flock(other, LOCK_SH), equals: 0)
      expect(done.wait(seconds: 60))
      try expect(outcome.withLock { $0 }?.get(), equals: 1)
    }
    try opened(try options(.sqlite)) {
      let files = try directory.names("made.touchstone").filter { $0 != "lock" && $0 != "database.json" }
      for name in files + ["database.json"] {
        try FileManager.default.moveItem(
          atPath: directory.file("made.touchstone/\(name)"), toPath: path + "/" + name)
      }
    }
    var wanted = try options(.lmdb)
    wanted.requireEngine = true
    let converted = try Database.open("converted", in: directory.path, options: try options(.lmdb))
    try converted.save("x", ["n": 1])
    try converted.close()
    try opened(wanted) {
      let from = directory.file("converted.touchstone")
      for name in try directory.names("converted.touchstone") where name.hasPrefix("data-") {
        try FileManager.default.moveItem(atPath: "\(from)/\(name)", toPath: "\(path)/\(name)")
      }
      expect(rename(from + "/database.json", path + "/database.json"), equals: 0)
    }
  }

  @Test("another directory's contents are never taken for a database, nor removed")
  func foreignDirectory() throws {
    let directory = TemporaryDirectory()
    let path = directory.path + "/a.touchstone"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    _ = FileManager.default.createFile(atPath: path + "/thesis.txt", contents: Data([1]))
    try expect(databaseCode { _ = try Database.open("a", in: directory.path) }, equals: .notADatabase)
    try expect(databaseCode { try Database.delete("a", in: directory.path) }, equals: .notADatabase)
    expect(FileManager.default.fileExists(atPath: path + "/thesis.txt"))
    // What a creation that didn't end left is made anew.
    try FileManager.default.removeItem(atPath: path + "/thesis.txt")
    _ = FileManager.default.createFile(atPath: path + "/data-1.sqlite", contents: Data([1, 2, 3]))
    let database = try Database.open("a", in: directory.path)
    try database.save("a", [:])
    try database.close()
  }

  @Test("a description that can't be read, or is of a later version, is told apart")
  func description() throws {
    let directory = TemporaryDirectory()
    try Database.open("a", in: directory.path).close()
    let path = directory.path + "/a.touchstone/database.json"
    for (text, expected) in [
      ("", DatabaseError.Code.damaged), ("{}", .damaged), ("[1]", .damaged),
      (#"{"version":2}"#, .unsupportedVersion), (#"{"version":1,"engine":"sqlite"}"#, .damaged),
      (#"{"version":1,"engine":"sqlite","file":"../x"}"#, .damaged),
      (#"{"version":1,"engine":"forestdb","file":"data-1.x"}"#, .unknownEngine),
    ] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      try expect(databaseCode { _ = try Database.open("a", in: directory.path) }, equals: expected, "\(text)")
    }
  }

  @Test(
    "a description that names the highest number of a file still compacts and converts",
    arguments: someEngines
  )
  func highestNumber(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("a", in: directory.path, options: try options(engine))
    try database.save("x", ["n": 1])
    let file = database.engineFile
    try database.close()
    let path = directory.path + "/a.touchstone"
    let name = (file as NSString).lastPathComponent
    let highest = "data-\(Int.max).\((name as NSString).pathExtension)"
    for other in try directory.names("a.touchstone") where other.hasPrefix(name) {
      expect(rename(path + "/" + other, path + "/" + highest + other.dropFirst(name.count)), equals: 0)
    }
    let description = try String(contentsOfFile: path + "/database.json", encoding: .utf8)
    try description.replacingOccurrences(of: name, with: highest)
      .write(toFile: path + "/database.json", atomically: true, encoding: .utf8)
    let again = try Database.open("a", in: directory.path, options: try options(engine))
    try again.compact()
    try expect(again.document("x") != nil)
    try again.close()
    try Database.convert("a", in: directory.path, to: engine, key: try key(of: engine))
    let converted = try Database.open("a", in: directory.path, options: try options(engine))
    try expect(converted.document("x") != nil && converted.check(deep: true).isEmpty)
    try converted.close()
  }

  @Test("wrong key, no key, key for a plain database, damaged key file")
  func keys() throws {
    let directory = TemporaryDirectory()
    let secret = try options(.sqlcipher)
    try Database.open("secret", in: directory.path, options: secret).close()
    try Database.open("plain", in: directory.path).close()
    try expect(Database.isEncrypted("secret", in: directory.path))
    try expect(!Database.isEncrypted("plain", in: directory.path))
    var options = secret
    options.key = try .passphrase("open barley")
    try expect(
      databaseCode { _ = try Database.open("secret", in: directory.path, options: options) },
      equals: .wrongKey)
    options.key = nil
    try expect(
      databaseCode { _ = try Database.open("secret", in: directory.path, options: options) },
      equals: .keyRequired)
    try expect(
      databaseCode { _ = try Database.open("plain", in: directory.path, options: secret) },
      equals: .notEncrypted)
    try expect(
      databaseCode { _ = try Database.open("new", in: directory.path, options: options) },
      equals: .keyRequired)
    options.engine = .sqlite
    options.key = secret.key
    try expect(
      databaseCode { _ = try Database.open("new2", in: directory.path, options: options) },
      equals: .notEncrypted)
    // LMDB is the same library with a key and without.
    options.engine = .lmdb
    let keyed = try Database.open("new3", in: directory.path, options: options)
    expect(keyed.engineName, equals: .lmdbEncrypted)
    try keyed.close()
    // A second open in the same process needs the key as well.
    let open = try Database.open("secret", in: directory.path, options: secret)
    options.key = try .passphrase("open barley")
    try expect(
      databaseCode { _ = try Database.open("secret", in: directory.path, options: options) },
      equals: .wrongKey)
    try open.close()
    let path = directory.path + "/secret.touchstone/key.json"
    try Data("{}".utf8).write(to: URL(fileURLWithPath: path))
    try expect(
      databaseCode { _ = try Database.open("secret", in: directory.path, options: secret) }, equals: .damaged)
  }

  @Test("a file with faults isn't opened where that is asked for", arguments: someEngines)
  func checksFile(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    let database = try Database.open("a", in: directory.path, options: options)
    for number in 0..<300 {
      try database.save("d\(number)", ["text": .string(String(repeating: "x", count: number))])
    }
    let location = database.engineFile
    try database.close()
    options.checksFile = true
    try Database.open("a", in: directory.path, options: options).close()
    // All files of a directory but the smallest.
    var isDirectory: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: location, isDirectory: &isDirectory)
    let files =
      isDirectory.boolValue
      ? try FileManager.default.contentsOfDirectory(atPath: location).map { location + "/" + $0 } : [location]
    // The last half: leaves, whatever the engine.
    for path in files where FileSize.of(path) >= 4_096 {
      var bytes = try Data(contentsOf: URL(filePath: path))
      for offset in (bytes.count / 2)..<bytes.count {
        bytes[offset] = UInt8(truncatingIfNeeded: offset &* 31)
      }
      try bytes.write(to: URL(filePath: path))
    }
    do {
      try Database.open("a", in: directory.path, options: options).close()
      expect(Bool(false), "a damaged file was opened")
    } catch let damaged as DamagedFile {
      expect(!damaged.faults.isEmpty && damaged.path.hasSuffix("a.touchstone"), "\(damaged)")
    } catch {
      // The engine may refuse it earlier.
      expect(
        (error as? StorageError)?.code == .damaged || (error as? DatabaseError)?.code == .damaged, "\(error)")
    }
  }

  @Test("a database open for reading only refuses writes", arguments: someEngines)
  func readOnly(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    var database = try Database.open("a", in: directory.path, options: options)
    try database.save("x", ["n": 1])
    try database.close()
    options.isReadOnly = true
    database = try Database.open("a", in: directory.path, options: options)
    try expect(database.document("x")?["n"].int, equals: 1)
    do {
      try database.save("y", [:])
      Issue.record("a write went through")
    } catch let error as StorageError { expect(error.code, equals: .readOnly) }
    try expect(databaseCode { try database.compact() }, equals: .readOnly)
    try database.close()
    try expect(
      databaseCode { _ = try Database.open("b", in: directory.path, options: options) }, equals: .notFound)
  }

  @Test("compaction gives space back, and writers go on afterwards", arguments: someEngines)
  func compaction(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("a", in: directory.path, options: try options(engine))
    let text = String(repeating: "some text ", count: 100)
    try database.inBatch { for n in 0..<2_000 { try database.save("doc\(n)", ["text": .string(text)]) } }
    try database.inBatch { for n in 0..<1_900 { try database.purge("doc\(n)") } }
    let before = try database.engine.maintenance.statistics().fileBytes
    try database.compact()
    let after = try database.engine.maintenance.statistics().fileBytes
    expect(after < before / 2, "\(before) bytes, then \(after)")
    try database.save("more", ["n": 1])
    try expect(database.documentCount, equals: 101)
    try database.close()
    let again = try Database.open("a", in: directory.path, options: try options(engine))
    try expect(again.document("more")?["n"].int, equals: 1)
    try expect(again.document("doc1950")?["text"].string, equals: text)
    try expect(again.checkIntegrity(), equals: [])
    try again.close()
  }

  @Test("a creation that fails leaves nothing, and the next one succeeds", arguments: allEngines)
  func failedCreation(_ engine: EngineName) throws {
    let type = try Engines.type(engine)
    let isSpoiling = Lock(true)
    let name = EngineName(rawValue: "spoiling-\(UUID())")
    Engines.register(
      EngineType(name: name.rawValue, fileExtension: type.fileExtension, encrypts: type.encrypts) {
        let opened = try type.open($0, $1)
        if isSpoiling.withLock({ $0 }) {
          // Its records don't fit into a keyspace of another shape.
          try opened.write { _ = try $0.createKeyspace("meta", shape: .sequences) }
        }
        return opened
      })
    try withTemporaryDirectory { directory in
      var options = try options(engine)
      options.engine = name
      for isThere in [false, true] {
        let path = directory + "/a.touchstone"
        if isThere {
          try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        }
        isSpoiling.withLock { $0 = true }
        #expect(throws: (any Error).self) { try Database.open("a", in: directory, options: options) }
        try expect(
          FileManager.default.contentsOfDirectory(atPath: directory), equals: isThere ? ["a.touchstone"] : [])
        if isThere { try expect(FileManager.default.contentsOfDirectory(atPath: path), equals: []) }
        isSpoiling.withLock { $0 = false }
        let database = try Database.open("a", in: directory, options: options)
        try database.save("doc", ["n": 1])
        try database.close()
        try FileManager.default.removeItem(atPath: path)
      }
    }
  }

  @Test("a compaction whose copy can't be read leaves the database as it is") func unreadableCopy() throws {
    let type = try Engines.type(.lmdb)
    let name = EngineName(rawValue: "spoiling-\(UUID())")
    Engines.register(
      EngineType(name: name.rawValue, fileExtension: type.fileExtension, encrypts: false) { path, options in
        let engine = try type.open(path, options)
        if path.contains("data-2") {
          try engine.write { transaction in
            let meta = try #require(try transaction.keyspace(named: "meta"))
            try transaction.delete(Array("publicUUID".utf8).span.bytes, in: meta)
          }
        }
        return engine
      })
    try withTemporaryDirectory { directory in
      let options = DatabaseOptions(engine: name, durability: .none)
      var database = try Database.open("a", in: directory, options: options)
      try database.save("before", ["n": 1])
      #expect(throws: DocumentError.self) { try database.compact() }
      try database.save("after", ["n": 2])
      try database.close()
      database = try Database.open("a", in: directory, options: options)
      try expect(database.document("after")?["n"].int, equals: 2)
      try database.close()
    }
  }

  @Test("an encrypted database's files hold no readable string of it")
  func nothingReadable() throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("a", in: directory.path, options: try options(.sqlcipher))
    try database.inBatch {
      for n in 0..<500 { try database.save("document-id-\(n)", ["property": "readable text of it \(n)"]) }
    }
    let path = directory.path + "/a.touchstone"
    func search() throws {
      for name in try FileManager.default.contentsOfDirectory(atPath: path) {
        let data = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        for text in ["document-id-", "readable text", "property", "SQLite format"] {
          expect(data.range(of: Data(text.utf8)) == nil, "\"\(text)\" in \(name)")
        }
      }
    }
    try search()
    try database.close()
    try search()
  }
}
