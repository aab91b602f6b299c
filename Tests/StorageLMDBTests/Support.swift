import Storage
import TestSupport

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
