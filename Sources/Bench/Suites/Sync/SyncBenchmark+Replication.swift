import BenchmarkKit
import FoundationEssentials
import Replication
import Storage
import Touchstone

extension SyncBenchmark {
  /// A run that replicates the documents of `apply-new` from another database, which has nothing else.
  func replicationTrial(_ engine: ProbedEngine, _ trial: TrialContext) throws -> Trial {
    let incoming = data.incoming(.applyNew, batch: 200)
    let source = try context.filled(
      "sync source \(engine.type.name)", open: { try data.open(engine, in: $0) }
    ) {
      database in
      for start in stride(from: 0, to: incoming.count, by: 2_000) {
        try database.apply(incoming[start..<min(start + 2_000, incoming.count)].lazy.map(\.revision))
      }
    }
    try Fixtures.copy(try data.filled(engine, indexes: 0), to: trial.directory)
    let target = try data.open(engine, in: trial.directory)
    let sourceDirectory = trial.directory + "-source"
    try Fixtures.copy(source, to: sourceDirectory)
    let other = try data.open(engine, in: sourceDirectory)
    var configuration =
      kind == .replicatePush
      ? ReplicatorConfiguration(other, .database(target)) : ReplicatorConfiguration(target, .database(other))
    configuration.direction = kind == .replicatePush ? .push : .pull
    let replicator = Replicator(configuration)
    return Trial(
      run: {
        let stopped = CountingSemaphore()
        let token = replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } }
        replicator.start()
        stopped.wait()
        token.cancel()
        if let error = replicator.status.error { throw error }
        return .whole
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
      finish: {
        defer {
          try? target.close()
          try? other.close()
          try? FileManager.default.removeItem(atPath: sourceDirectory)
        }
        try data.check(target, incoming)
      })
  }
}
