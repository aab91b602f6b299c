import Storage
import TestSupport
import Testing
import Touchstone
import Views

@testable import HTTPAPI

/// The databases of a folder, which are opened when a client asks for them.
@Suite struct FolderDatabasesTests {
  private let directory = TemporaryDirectory()

  @Test("a database whose opening waits for another writer keeps nobody from the others")
  func opening() throws {
    let folder = try DatabaseFolder(directory.path)
    for name in ["busy", "free"] { try folder.open(name).close() }
    let catalog = FolderDatabases(folder)
    // What another process would do: it writes for as long as it likes.
    let writer = try Database.open(
      directory.file("busy"), options: DatabaseOptions(creation: .openExisting))
    let (isWriting, mayEnd) = (CountingSemaphore(), CountingSemaphore())
    let writing = Thread {
      try? writer.inBatch {
        isWriting.signal()
        mayEnd.wait()
      }
    }
    writing.start()
    isWriting.wait()
    let isOpened = Lock(false)
    let opening = Thread {
      let database = try? catalog.database("busy")
      isOpened.withLock { $0 = database != nil }
    }
    opening.start()
    // Wherever the other thread waits now.
    for _ in 0..<100 { try expect(catalog.database("free") != nil) }
    mayEnd.signal()
    eventually { opening.isFinished && writing.isFinished }
    expect(isOpened.withLock { $0 })
    try expect(catalog.database("busy") === catalog.database("busy"))
    try writer.close()
    try catalog.close()
  }

  @Test("a folder with a key opens plain databases only if it is told to")
  func plainBesideEncrypted() throws {
    let key = try UserKey.raw([UInt8](repeating: 7, count: 32))
    var options = DatabaseOptions(engine: .lmdbEncrypted)
    options.key = key
    let folder = try DatabaseFolder(directory.path, options: options)
    try folder.open("secret").close()
    try folder.open("plain", options: DatabaseOptions(engine: .lmdb)).close()
    for opensPlain in [true, false] {
      let catalog = FolderDatabases(folder, opensPlain: opensPlain)
      try expect(catalog.database("secret") != nil)
      if opensPlain {
        try expect(catalog.database("plain") != nil)
      } else {
        let error = try #require(throws: DatabaseError.self) { try catalog.database("plain") }
        expect(error.code, equals: .notEncrypted)
      }
      try catalog.close()
    }
  }

  @Test("what fails here says why, and not where the files are") func failures() {
    let full = CouchDBError(failure: StorageError(.diskFull, "can't commit", path: "/secret/place"))
    expect(full, equals: CouchDBError(507, "insufficient_storage", "the disk is full: can't commit"))
    let inUse = CouchDBError(failure: DatabaseError(.inUse, "it is being converted", path: "/secret/place"))
    expect(inUse, equals: CouchDBError(503, "service_unavailable", "it is being converted"))
    let broken = CouchDBError(failure: StorageError(.ioError, "can't read", path: "/secret/place"))
    expect(broken, equals: CouchDBError(500, "internal_server_error", "can't read"))
  }

  @Test("a database that can't be opened doesn't hide the others from _dbs_info") func information() throws {
    let folder = try DatabaseFolder(directory.path)
    try folder.open("good").close()
    var options = DatabaseOptions(engine: .lmdbEncrypted)
    options.key = try .raw([UInt8](repeating: 7, count: 32))
    try folder.open("secret", options: options).close()
    let answer = try APIClient(folder: folder).get("/_dbs_info")
    expect(answer.status, equals: 200)
    let entries = try (answer.json().array ?? []).map { $0.object ?? [:] }
    expect(entries.map { $0["key"]?.string }, equals: ["good", "secret"])
    expect(entries.map { $0["error"]?.string }, equals: [nil, "internal_server_error"])
  }
}
