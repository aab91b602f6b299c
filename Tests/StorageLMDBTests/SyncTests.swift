import LMDBTestSupport
import TestSupport

@testable import StorageLMDB

/// What reaches the disk, and what is told when it doesn't. The child's syncs are counted, and fail when it says so
/// (Tests/CountedSync).
@Suite("Syncs of LMDB's files") struct SyncTests {
  let directory = TemporaryDirectory()

  @Test("at durability full the folder is synced that a file was made in") func folder() throws {
    for (level, status) in [(0, 7), (1, 0), (2, 0)] as [(Int, Int32)] {
      #expect(try runLMDBChild("folder-sync", directory.file("level\(level).mdb"), level) == .exited(status))
    }
  }

  @Test("a sync that fails is told, and the file can be used again", arguments: ["open", "commit", "close"])
  func failures(_ moment: String) throws {
    let number = try #require(["open", "commit", "close"].firstIndex(of: moment))
    #expect(try runLMDBChild("failing-sync", directory.file(), number) == .exited(0))
  }
}
