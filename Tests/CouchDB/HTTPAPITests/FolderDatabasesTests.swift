import HTTPAPI
import Storage
import TestSupport
import Testing
import Touchstone

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
}
