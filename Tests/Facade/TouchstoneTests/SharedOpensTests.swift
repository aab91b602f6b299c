import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// Several opens of one path in a process, and what each of them may do.
@Suite("Opens that share a database") struct SharedOpensTests {
  /// Everything that writes is refused.
  private func expectReadOnly(_ database: Database, sourceLocation: SourceLocation = #_sourceLocation) throws
  {
    #expect(database.isReadOnly, sourceLocation: sourceLocation)
    let writes: [(String, () throws -> Void)] = [
      ("save", { try database.save("new", ["n": 1]) }),
      ("batch", { try database.inBatch {} }),
      ("delete", { try database.delete("x") }),
      ("purge", { try database.purge("x") }),
      ("update", { try database.update("x") { $0["n"] = 2 } }),
      ("apply", { try database.apply(PulledRevision(id: "p", history: ["1-aa"], body: [:])) }),
      ("expiration", { try database.setExpiration(of: "x", after: 1) }),
      ("purge of the expired", { try database.purgeExpired() }),
      ("index", { try database.createIndex("i", on: ["n"]) }),
      ("removal of an index", { try database.deleteIndex("i") }),
      ("local document", { try database.saveLocalDocument("l", ["n": 1]) }),
      ("blob", { _ = try database.makeBlob([1]) }),
      ("depth", { try database.setMaximumTreeDepth(3) }),
    ]
    for (name, write) in writes {
      do {
        try write()
        Issue.record("\(name) went through", sourceLocation: sourceLocation)
      } catch let error as StorageError {
        #expect(error.code == .readOnly, "\(name)", sourceLocation: sourceLocation)
      } catch { Issue.record("\(name) threw \(error)", sourceLocation: sourceLocation) }
    }
    #expect(try databaseCode { try database.compact() } == .readOnly, sourceLocation: sourceLocation)
    #expect(try databaseCode { try database.delete() } == .readOnly, sourceLocation: sourceLocation)
  }

  @Test("one that only reads stays so beside one that writes", arguments: someEngines)
  func readerBesideWriter(_ engine: EngineName) async throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    let writer = try Database.open("a", in: directory.path, options: options)
    try writer.save("x", ["n": 1])
    options.isReadOnly = true
    let reader = try Database.open("a", in: directory.path, options: options)
    expect(!writer.isReadOnly)
    try expectReadOnly(reader)
    await #expect(throws: StorageError.self) { try await reader.write { try $0.save("y", ["n": 1]) } }
    try writer.save("x", ["n": 2])
    try expect(reader.document("x")?["n"].int, equals: 2)
    #expect(try await reader.query("SELECT n FROM _").run().count == 1)
    try writer.close()
    // It is the last one by now.
    try expect(reader.document("x")?["n"].int, equals: 2)
    try expectReadOnly(reader)
    try reader.close()
    try expect(databaseCode { try reader.delete() }, equals: .readOnly)
    expect(Database.exists("a", in: directory.path))
  }

  @Test("one that writes opens beside one that only reads", arguments: someEngines)
  func writerBesideReader(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let options = try options(engine)
    let first = try Database.open("a", in: directory.path, options: options)
    try first.save("x", ["n": 1])
    try first.createIndex("n", on: ["n"])
    try first.close()
    var reading = options
    reading.isReadOnly = true
    let reader = try Database.open("a", in: directory.path, options: reading)
    let told = CountingSemaphore()
    let token = try reader.observe { _ in told.signal() }
    try expectReadOnly(reader)
    let before = try FileManager.default.contentsOfDirectory(atPath: reader.path)
    // It waits for a read that is going on.
    let opened = Lock<Database?>(nil)
    let done = CountingSemaphore()
    try reader.read { (snapshot: DocumentSnapshot) throws -> Void in
      Thread.detachNewThread {
        do {
          let writer = try Database.open("a", in: directory.path, options: options)
          opened.withLock { $0 = writer }
        } catch { Issue.record("\(error)") }
        done.signal()
      }
      usleep(50_000)
      try expect(snapshot.document("x")?["n"].int, equals: 1)
      // Another snapshot of the same open may begin meanwhile.
      try expect(reader.document("x")?["n"].int, equals: 1)
    }
    done.wait()
    let writer = try #require(opened.withLock { $0 })
    expect(writer.engine === reader.engine)
    let blob = try writer.makeBlob([1, 2, 3])
    try writer.save("x", ["n": 2, "blob": blob.jsonValue])
    expect(told.wait(seconds: 30))
    try expect(reader.document("x")?["n"].int, equals: 2)
    try expect(reader.contents(of: blob), equals: [1, 2, 3])
    try expect(reader.query("SELECT n FROM _ WHERE n = 2").run().count, equals: 1)
    try expectReadOnly(reader)
    token.cancel()
    try reader.close()
    try writer.save("y", ["n": 3])
    try writer.compact()
    try expect(writer.check(deep: true), equals: [])
    try writer.close()
    let after = try FileManager.default.contentsOfDirectory(atPath: writer.path)
    expect(Set(before).isSubset(of: after + before.filter { $0.hasPrefix("data-") }))
  }

  @Test("one that can't be opened for writing leaves those that read as they are")
  func refusedWriter() throws {
    let directory = TemporaryDirectory()
    var options = try options(.lmdbEncrypted)
    let first = try Database.open("a", in: directory.path, options: options)
    try first.save("x", ["n": 1])
    try first.close()
    options.isReadOnly = true
    let reader = try Database.open("a", in: directory.path, options: options)
    options.isReadOnly = false
    try reader.read { (snapshot: DocumentSnapshot) throws -> Void in
      // Never while it is read.
      #expect(throws: StorageError.self) { _ = try Database.open("a", in: directory.path, options: options) }
      try expect(snapshot.documentCount, equals: 1)
    }
    options.key = try .raw([UInt8](repeating: 8, count: 32))
    try expect(
      databaseCode { _ = try Database.open("a", in: directory.path, options: options) }, equals: .wrongKey)
    try expect(reader.document("x")?["n"].int, equals: 1)
    try reader.close()
  }

  @Test("one that writes with other options is told which")
  func otherOptions() throws {
    let directory = TemporaryDirectory()
    let options = DatabaseOptions(durability: .none, maximumTreeDepth: 7)
    let database = try Database.open("a", in: directory.path, options: options)
    let others: [(String, (inout DatabaseOptions) -> Void)] = [
      ("durability", { $0.durability = .full }),
      ("maximumTreeDepth", { $0.maximumTreeDepth = nil }),
      ("keepsReplacedBodies", { $0.keepsReplacedBodies = false }),
      ("verifiesChecksums", { $0.verifiesChecksums = true }),
      ("compaction", { $0.compaction = .off }),
      ("cacheBytes", { $0.cacheBytes = 1 << 20 }),
      ("libraryPath", { $0.libraryPath = "/nowhere.so" }),
    ]
    for (name, change) in others {
      var other = options
      change(&other)
      let error = #expect(throws: DatabaseError.self) {
        try Database.open("a", in: directory.path, options: other)
      }
      expect(error?.code, equals: .otherOptions)
      expect(error?.message.contains(name), equals: true, "\(error?.message ?? "")")
    }
    // Who only reads goes by those of the other.
    let reader = try Database.open("a", in: directory.path, options: DatabaseOptions(isReadOnly: true))
    try reader.close()
    try Database.open("a", in: directory.path, options: options).close()
    try database.close()
  }

  @Test("a removal that fails leaves the database open", arguments: someEngines)
  func failedRemoval(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let options = try options(engine)
    let database = try Database.open("a", in: directory.path, options: options)
    try database.save("x", ["n": 1])
    let second = try Database.open("a", in: directory.path, options: options)
    try expect(databaseCode { try database.delete() }, equals: .inUse)
    try database.save("x", ["n": 2])
    try second.close()
    try database.read { (snapshot: DocumentSnapshot) throws -> Void in
      #expect(throws: StorageError.self) { try database.delete() }
      try expect(snapshot.document("x")?["n"].int, equals: 2)
    }
    try database.inBatch { () throws -> Void in
      try expect(databaseCode { try database.delete() }, equals: .inUse)
      try database.save("x", ["n": 3])
    }
    try expect(database.document("x")?["n"].int, equals: 3)
    let told = CountingSemaphore()
    let token = try database.observe { _ in told.signal() }
    try database.save("y", ["n": 3])
    expect(told.wait(seconds: 30))
    token.cancel()
    try database.delete()
    try expect(databaseCode { _ = try database.document("x") }, equals: .closed)
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }

  @Test("a directory that isn't there is named, or made when that is asked for")
  func parents() throws {
    let directory = TemporaryDirectory()
    var options = DatabaseOptions()
    try expect(
      databaseCode { _ = try Database.open("b/c/a", in: directory.path) }, equals: .noParentDirectory)
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
    options.creation = .openExisting
    options.makesParents = true
    try expect(
      databaseCode { _ = try Database.open("b/c/a", in: directory.path, options: options) }, equals: .notFound
    )
    options.creation = .openOrCreate
    let database = try Database.open("b/c/a", in: directory.path, options: options)
    let again = try Database.open(directory.path + "/b/c/a", options: options)
    expect(again.engine === database.engine)
    try again.close()
    try expect(
      databaseCode { try Database.copy(database.path, to: "d/a", in: directory.path) },
      equals: .noParentDirectory)
    try database.delete()
  }

  @Test(
    "a name that is no name is refused",
    arguments: ["", ".", "..", "/", "a/.", "a/..", "./", ".touchstone", "..touchstone", "a/...touchstone"])
  func names(_ name: String) throws {
    let directory = TemporaryDirectory()
    try expect(databaseCode { _ = try Database.open(name, in: directory.path) }, equals: .invalidName)
    try expect(databaseCode { try Database.delete(name, in: directory.path) }, equals: .invalidName)
    expect(!Database.exists(name, in: directory.path))
    try expect(databaseCode { _ = try Database.open("a", in: "") }, equals: .invalidName)
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }
}
