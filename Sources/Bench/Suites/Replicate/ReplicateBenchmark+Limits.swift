import BenchmarkKit
import FoundationEssentials
import Limits
import Storage
import Touchstone

extension ReplicateBenchmark {
  /// The limit of a workload: what the link costs in bare C, or in one process what storing the same costs. A run with
  /// nothing to replicate has none.
  func limit() -> Workload.Limit? {
    if kind.content == .nothing { return nil }
    if variant.link != .local {
      return Workload.Limit(name: { _ in "the same bytes over a loopback socket, bare C" }) {
        try exchange($0)
      }
    }
    switch kind.content {
    case .documents:
      return Workload.Limit(name: { _ in "apply of the same revisions, \(Self.batch) a transaction" }) {
        try application($0)
      }
    case .blobs:
      return Workload.Limit(name: { _ in "a copy of the same files, with fsync" }) { try copy($0) }
    case .changes, .nothing: return nil
    }
  }

  private static let batch = 2_000

  /// Sends as many bytes as the last run has sent and received, in as many messages.
  private func exchange(_ trial: TrialContext) throws -> Trial {
    let name = trafficName(trial.engine)
    let traffic: ReplicateTraffic
    if let known = data.traffic.withLock({ $0[name] }) {
      traffic = known
    } else {
      // The first of all runs is the workload's, so this is for limits that run alone.
      traffic = try ranOnce(trial)
    }
    let (bytes, replyBytes, messages, replies) =
      traffic.sentBytes >= traffic.receivedBytes
      ? (traffic.sentBytes, traffic.receivedBytes, traffic.sentMessages, traffic.receivedMessages)
      : (traffic.receivedBytes, traffic.sentBytes, traffic.receivedMessages, traffic.sentMessages)
    return Trial(run: {
      let outcome = try LimitDatabase.run { limit_exchange(bytes, messages, replyBytes, replies, &$0) }
      try RunMismatch.check("bytes received", Int(outcome.count), bytes + replyBytes)
      return .seconds(outcome.seconds)
    })
  }

  private func ranOnce(_ trial: TrialContext) throws -> ReplicateTraffic {
    let prepared = try prepare(trial)
    do {
      _ = try prepared.run()
      _ = try prepared.metrics()
    } catch {
      try? prepared.finish()
      throw error
    }
    try prepared.finish()
    return data.traffic.withLock { $0[trafficName(trial.engine)] } ?? ReplicateTraffic()
  }

  /// Applies the revisions of a run to the database that gets them.
  private func application(_ trial: TrialContext) throws -> Trial {
    let local = try context.engine(trial.engine)
    let other = try context.engine(variant.target(trial.engine))
    let (source, engine) = kind.isPush ? (local, other) : (other, local)
    var revisions: [PulledRevision] = []
    try FileManager.default.createDirectory(
      atPath: trial.directory + "/source", withIntermediateDirectories: true)
    try Fixtures.copy(try data.filled(source, .documents), to: trial.directory + "/source")
    let full = try data.open(source, in: trial.directory + "/source")
    try full.closingOnFailure {
      try full.read { snapshot in
        try snapshot.enumerate { document in
          var json: [UInt8] = []
          try document.writeJSON(into: &json)
          let revision = try document.revisionID().description
          revisions.append(PulledRevision(id: document.id, history: [revision], body: .json(json)))
          return true
        }
      }
    }
    try full.close()
    let database = try data.open(engine, in: trial.directory)
    return Trial(
      timing: {
        for start in stride(from: 0, to: revisions.count, by: Self.batch) {
          try database.apply(revisions[start..<min(start + Self.batch, revisions.count)])
        }
      },
      finish: {
        defer { try? database.close() }
        try RunMismatch.check("documents after the apply", try database.documentCount, revisions.count)
      })
  }

  /// Copies the files of the blobs.
  private func copy(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(kind.isPush ? trial.engine : variant.target(trial.engine))
    let path = try data.filled(engine, .blobs)
    let files = try FileManager.default.subpathsOfDirectory(atPath: path).filter {
      $0.contains("Attachments/")
    }
    return Trial(timing: {
      for (number, file) in files.enumerated() {
        try FileCopy.copy("\(path)/\(file)", to: "\(trial.directory)/\(number)")
      }
    })
  }
}
