import TestTools

@testable import StorageLMDB

extension TemporaryDirectory {
  /// The path of an engine's file in it.
  func file() -> String { file("main.mdb") }
}

func open(
  _ path: String, _ creation: FileCreation = .openOrCreate, mapBytes: Int = MapSize.wanted()
) throws -> LMDBEngine {
  try LMDBEngine(
    path: path, options: EngineOptions(creation: creation, durability: .none), mapBytes: mapBytes)
}

extension LMDBEngine {
  /// Closes an engine whose file has no faults.
  func closeSound() throws {
    try expect(checkIntegrity(), equals: [])
    try close()
  }
}

/// The faults of a file: what the check finds, or why it isn't opened, which has to be damage.
func faults(of path: String) throws -> [String] {
  do {
    let engine = try open(path, .openExisting)
    defer { try? engine.close() }
    return try engine.checkIntegrity()
  } catch let error as StorageError {
    expect(error.code, equals: .damaged)
    return ["at open: \(error.message)"]
  }
}

extension PageFile {
  /// The newest meta page, of those of the first transactions.
  func newestMeta() throws -> MetaPage {
    try #require((0..<200).compactMap { try? meta(of: UInt64($0)) }.last)
  }
}
