import StorageConformance
import StorageLMDB
import TestTools

/// Starts a command of the child for the engines over LMDB. It ends when its input does.
package func startLMDBChild(
  _ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil
) throws -> ChildProcess {
  let environment = mapBytes.map { [MapSize.variable: "\($0)"] } ?? [:]
  return try startChild(
    .storage, "lmdb", command, path, "\(number)", environment: environment, hasInput: true)
}

/// Runs a command of the child for the engines over LMDB, and returns how it ended.
package func runLMDBChild(
  _ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil
) throws -> ChildProcess.Ending {
  try startLMDBChild(command, path, number, mapBytes: mapBytes).end()
}
