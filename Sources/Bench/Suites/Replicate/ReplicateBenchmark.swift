import BenchmarkKit
import Replication
import ReplicationBLIP
import Storage
import Touchstone
import TouchstoneSync

/// What went over the wire in a run, as the local side counts it.
struct ReplicateTraffic: Sendable {
  var sentBytes = 0
  var receivedBytes = 0
  var sentMessages = 0
  var receivedMessages = 0
}

/// A benchmark of the suite `replicate` with its parameters. It makes the runs on a pair of engines.
struct ReplicateBenchmark: Sendable {
  let kind: ReplicateWorkload
  let variant: ReplicateVariant
  let data: ReplicateData
  let context: SuiteContext

  /// Identifies the other database in checkpoints, whatever the link and the port.
  static let remoteID = "touchstone://bench/other"

  func workload() -> Workload {
    Workload(
      suite: "replicate", name: kind.rawValue, summary: kind.summary, parameters: variant.parameters,
      operations: max(1, data.count(kind.content)), runsThreads: true, limit: limit(),
      runs: { $0 != variant.target && (variant.target.map { context.engines[$0] != nil } ?? true) },
      prepare: { try prepare($0) })
  }

  /// The name of what a run sends, for the limit that sends the same.
  func trafficName(_ engine: String) -> String { "\(kind.rawValue) \(variant.parameters.text) \(engine)" }

  func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let target = try context.engine(variant.target(trial.engine))
    try data.lay(kind, engine, target, variant.link, in: trial.directory)
    let other = try OtherSide(variant.link, target, data, context.settings, in: trial.directory)
    let local: Database
    do { local = try data.open(engine, in: ReplicateData.local(trial.directory)) } catch {
      try? other.close()
      throw error
    }
    let replicator = Replicator(try configuration(local, other))
    let run = ReplicateRun(replicator, other)
    // Memory that was freed before and kept by the allocator doesn't belong to this run.
    FreedMemory.giveBack()
    return Trial(
      run: {
        let seconds = try run.measure()
        try RunMismatch.check(
          "documents replicated", Int(replicator.status.progress.completed), data.count(kind.content))
        return .seconds(seconds)
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
      metrics: {
        let traffic = run.traffic
        data.traffic.withLock { $0[trafficName(trial.engine)] = traffic }
        return metrics(run, traffic)
      },
      finish: {
        defer { try? local.close() }
        // A server has to end before its database can be opened.
        try other.withDatabase { try data.check(kind, local, $0, byHTTP: variant.link == .http) }
      })
  }

  private func configuration(_ local: Database, _ other: OtherSide) throws -> ReplicatorConfiguration {
    var configuration = ReplicatorConfiguration(local, try other.target())
    configuration.direction = kind.isPush ? .push : .pull
    configuration.remoteID = Self.remoteID
    configuration.connection.proxy = .none
    configuration.connection.serverTrust = .selfSigned
    configuration.maximumRetries = 0
    return configuration
  }

  private func metrics(_ run: ReplicateRun, _ traffic: ReplicateTraffic) -> [Metric: Double] {
    var metrics: [Metric: Double] = [.anonymousMemoryBytes: Double(run.localPeak.bytes)]
    guard variant.link != .local else { return metrics }
    metrics[.remoteCPUSeconds] = run.remoteCPUSeconds
    metrics[.remoteAnonymousBytes] = Double(run.remotePeak.bytes)
    metrics[.sentBytes] = Double(traffic.sentBytes)
    metrics[.receivedBytes] = Double(traffic.receivedBytes)
    metrics[.messages] = Double(traffic.sentMessages + traffic.receivedMessages)
    let bytes = data.bytes(kind.content)
    if bytes > 0 {
      metrics[.wireAmplification] = Double(traffic.sentBytes + traffic.receivedBytes) / Double(bytes)
    }
    return metrics
  }
}

/// One run of a replicator, with what it takes on both sides.
final class ReplicateRun {
  /// The memory is looked at so often, in seconds. The thread that looks takes a hundredth of a core.
  private static let interval = 0.01

  let localPeak = MemoryPeak(every: interval)
  let remotePeak: MemoryPeak
  /// The processor time of the other process during the run, in seconds.
  private(set) var remoteCPUSeconds = 0.0
  private let replicator: Replicator
  private let other: OtherSide

  init(_ replicator: Replicator, _ other: OtherSide) {
    self.replicator = replicator
    self.other = other
    let server = other.server
    remotePeak = MemoryPeak(every: Self.interval) { server?.anonymousMemory }
  }

  /// Runs the replicator to its end, and returns the seconds that it took.
  func measure() throws -> Double {
    var seconds = 0.0
    let before = other.server?.cpuNanoseconds ?? 0
    func work() throws {
      let begin = Clock.nanoseconds()
      try replicator.runToEnd()
      seconds = Double(Clock.nanoseconds() - begin) / 1e9
    }
    try localPeak.measure {
      if other.server == nil { try work() } else { try remotePeak.measure(work) }
    }
    remoteCPUSeconds = Double((other.server?.cpuNanoseconds ?? before) - before) / 1e9
    return seconds
  }

  var traffic: ReplicateTraffic {
    let bytes = replicator.transferredBytes
    let messages = replicator.transferredMessages
    return ReplicateTraffic(
      sentBytes: Int(bytes.sent), receivedBytes: Int(bytes.received), sentMessages: Int(messages.sent),
      receivedMessages: Int(messages.received))
  }
}

/// The other database of a run: open in this process, or served by another one.
final class OtherSide {
  private let link: ReplicateVariant.Link
  private let open: () throws -> Database
  private var database: Database?
  private(set) var server: ReplicateServer?

  init(
    _ link: ReplicateVariant.Link, _ engine: ProbedEngine, _ data: ReplicateData, _ settings: BenchSettings,
    in directory: String
  ) throws {
    self.link = link
    let path = ReplicateData.other(directory)
    open = { try data.open(engine, in: path) }
    if link == .local {
      database = try open()
      return
    }
    guard let executable = settings.executable else {
      throw StorageError(.invalidArgument, "the link \(link.rawValue) needs the executable that serves")
    }
    server = try ReplicateServer(
      executable, path: "\(path)/\(ReplicateData.name)", engine: engine, durability: settings.durability,
      isSecure: link == .wss, in: directory)
  }

  /// What a replicator connects to.
  func target() throws -> ReplicatorTarget {
    if let database { return .database(database) }
    let url = link == .http ? server?.url : server?.webSocketURL
    return try .url((url ?? "") + ReplicateData.name)
  }

  /// Ends the server if there is one, and lends the database. It is closed afterwards.
  func withDatabase(_ body: (Database) throws -> Void) throws {
    if let server {
      self.server = nil
      try server.stop()
      database = try open()
    }
    defer { try? close() }
    if let database { try body(database) }
  }

  func close() throws {
    if let server {
      self.server = nil
      try server.stop()
    }
    try database?.close()
    database = nil
  }
}
