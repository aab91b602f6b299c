import Foundation
import LMDBTestSupport
import TestTools

@testable import StorageLMDB

/// What reaches the disk, and what is told when it doesn't. The child's syncs are counted, and fail when it says so
/// (Tests/Support/SystemCalls).
@Suite("Syncs of LMDB's files") struct SyncTests {
  let directory = TemporaryDirectory()

  @Test("the folder is synced that a file was made in, unless durability is none") func folder() throws {
    for (level, status) in [(0, 7), (1, 7), (2, 0)] as [(Int, Int32)] {
      try expect(
        runLMDBChild("folder-sync", directory.file("level\(level).mdb"), level), equals: .exited(status))
    }
  }

  @Test("a sync that fails is told, and the file can be used again", arguments: ["open", "commit", "close"])
  func failures(_ moment: String) throws {
    let number = try #require(["open", "commit", "close"].firstIndex(of: moment))
    try expect(runLMDBChild("failing-sync", directory.file(), number), equals: .exited(0))
  }

  @Test("the meta page of the last commit is written again as it was, and no other one")
  func metaPageAgain() throws {
    let path = directory.file()
    let engine = try LMDBEngine(path: path, options: EngineOptions(durability: .normal))
    for number in 0..<3 {
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put(bytes("\(number)"), bytes("value"), in: keyspace)
      }
    }
    let last = engine.environment.lastTransaction
    try engine.close()
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let descriptor = Glibc.open(path, O_RDWR)
    defer { close(descriptor) }
    try MetaPage.writeAgain(last, descriptor, path)
    try MetaPage.writeAgain(last - 1, descriptor, path)
    try expect(Data(contentsOf: URL(fileURLWithPath: path)), equals: before)
    try expect(storageCode { try MetaPage.writeAgain(last + 1, descriptor, path) }, equals: .damaged)
  }
}
