import StorageConformance

/// Draws the steps of a simulation of several replicas from a seed.
package struct ReplicaGenerator {
  private var random: SeededGenerator
  private let count: Int
  private var generators: [StepGenerator] = []

  package init(seed: UInt64, _ settings: ReplicaWorld.Settings, engines: [String]) {
    random = SeededGenerator(seed: seed)
    count = settings.replicas.count
    for replica in settings.replicas {
      generators.append(StepGenerator(seed: random.next(), replica, engines: engines))
    }
  }

  package mutating func next() -> ReplicaStep {
    let replica = random.below(count)
    switch random.below(100) {
    case 0..<70: return .one(replica: replica, generators[replica].next())
    case 70..<77: return .remake(replica: replica, id: "doc\(random.below(12))", content(replica))
    default: return .replicate(run(from: replica))
    }
  }

  /// Now and then nil: the content of the document's first revision.
  private mutating func content(_ replica: Int) -> Content? {
    guard !random.once(in: 3) else { return nil }
    let word = "wort\(random.below(20))x"
    return Content(number: random.below(50), words: [word], blob: nil, padding: random.below(40))
  }

  private mutating func run(from source: Int) -> ReplicaRun {
    let target = (source + 1 + random.below(count - 1)) % count
    var run = ReplicaRun(
      source: source, target: target, transport: random.pick([.local, .webSocket, .webSocket, .http]),
      direction: random.pick([.both, .both, .both, .push, .pull]))
    run.resolver = random.pick([.standard, .standard, .standard, .local, .remote, .merge])
    run.resets = random.once(in: 15)
    guard random.once(in: 5) else { return run }
    let microseconds = random.below(random.pick([500, 5_000, 40_000]))
    let isLocal = run.transport == .local
    switch random.below(3) {
    case 0 where !isLocal: run.cut = .connection(microseconds: microseconds)
    case 1 where !isLocal: run.cut = .target(microseconds: microseconds)
    default: run.cut = .source(microseconds: microseconds)
    }
    return run
  }
}
