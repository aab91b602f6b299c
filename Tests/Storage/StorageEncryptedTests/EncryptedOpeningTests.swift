import LMDBTestSupport
import TestTools

@testable import StorageLMDB
@testable import StorageEncrypted

/// What opening an encrypted file does, and doesn't.
struct EncryptedOpeningTests {
  let directory = TemporaryDirectory()

  @Test("of two processes that make one encrypted file the loser leaves it alone") func races() throws {
    for round in 0..<25 {
      let path = directory.file("\(round).emdb")
      let children = try (1...2).map { try startLMDBChild("encrypted", path, $0) }
      let statuses = try children.map { try $0.end() }
      expect(
        statuses == [.exited(0), .exited(7)] || statuses == [.exited(7), .exited(0)],
        "round \(round): \(statuses)")
      let winner = statuses[0] == .exited(0) ? 1 : 2
      // It has its key and its data.
      try expect(runLMDBChild("encrypted", path, winner), equals: .exited(0))
    }
  }

  @Test("a new file whose opening fails is removed") func failures() throws {
    let path = directory.file("new.emdb")
    try expect(
      storageCode {
        _ = try LMDBEncryptedEngine(
          path: path, options: EngineOptions(key: encryptionKey), mapBytes: MapSize.wanted(), nodePages: 99)
      } != nil)
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }
}
