import StorageConformance
import Touchstone

extension Database {
  /// Runs `body` in a batch that is undone.
  package func inUndoneBatch(_ body: () throws -> Void) throws {
    try expectUndone { undo in
      try inBatch {
        try body()
        throw undo
      }
    }
  }
}
