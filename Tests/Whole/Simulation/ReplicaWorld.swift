import Foundation
import Touchstone

/// Two or three databases that replicate with each other. Each is a world with a model of its own.
package final class ReplicaWorld {
  package struct Settings: Codable, Equatable, Sendable {
    package var replicas: [World.Settings]

    package init(replicas: [World.Settings]) { self.replicas = replicas }
  }

  private let worlds: [World]
  private var rules = ReplicaRules()

  package init(_ settings: Settings, in directory: String) throws {
    worlds = try settings.replicas.enumerated().map { number, settings in
      let path = "\(directory)/\(number)"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      return try World(settings, in: path)
    }
  }

  /// Does a step. Throws a `Mismatch` if an answer isn't right.
  package func run(_ step: ReplicaStep) throws {
    switch step {
    case .one(let replica, let step):
      try worlds[replica].run(step)
      try worlds[replica].seeTombstones()
    case .remake(let replica, let id, let content):
      guard let content = content ?? rules.firstContent(of: id) else { return }
      try worlds[replica].run(.one(worker: 0, .purge(id: id)))
      try worlds[replica].run(.one(worker: 0, .save(id: id, content)))
    case .replicate(let run): _ = try replicate(run)
    }
  }

  /// Replicates between all until nothing moves. First as they are; then comparing everything, so that what was purged
  /// on one side comes back. Then all have the same.
  package func checkAll() throws {
    let before = try worlds.map { try $0.state() }
    for state in before { try rules.learn(state) }
    let transports: [ReplicaRun.Transport] = [.local, .webSocket, .http]
    for resets in [false, true] {
      var isQuiet = false
      var rounds = 0
      while !isQuiet {
        isQuiet = true
        for (source, target) in pairs {
          let transport = transports[(source + target + rounds) % 3]
          let run = ReplicaRun(
            source: source, target: target, transport: transport, direction: .both,
            resets: resets && rounds < 2)
          if try replicate(run) || rounds < 1 { isQuiet = false }
        }
        rounds += 1
        guard rounds < 12 else { throw Mismatch("after \(rounds) rounds something still moves") }
      }
    }
    let after = try worlds.map { try $0.state() }
    try rules.checkEqual(after)
    try rules.checkEnd(before, after[0])
    for world in worlds { try world.checkAll() }
  }

  /// The trees of all documents, for people: current branches first, tombstones with a `x`.
  func trees() throws -> String {
    try worlds.enumerated().map { number, world in
      let documents = try world.read().documents.sorted { $0.key < $1.key }.map { id, document in
        let branches = document.branches.map { branch in
          branch.history.map { "\($0.prefix(7))" }.joined(separator: "<")
            + (branch.leaf.isDeleted ? " x" : "")
        }
        return "\(id) #\(document.sequence) " + branches.joined(separator: ", ")
      }
      return "  replica \(number): " + documents.joined(separator: "; ")
    }.joined(separator: "\n")
  }

  private var pairs: [(Int, Int)] {
    worlds.indices.flatMap { source in worlds.indices.dropFirst(source + 1).map { (source, $0) } }
  }

  // MARK: Replications

  /// Replicates, and takes what both have then. Returns whether anything has changed.
  private func replicate(_ run: ReplicaRun) throws -> Bool {
    let (source, target) = (worlds[run.source], worlds[run.target])
    let before = (source: try source.state(), target: try target.state())
    var order = ReplicaOrder(
      target: .local(engine: "\(target.engine)", directory: target.directory),
      remoteID: "replica \(run.target)", direction: run.direction, resolver: run.resolver,
      resets: run.resets)
    if run.transport != .local {
      let port = try target.serve()
      order.target = run.transport == .http ? .http(port: port) : .webSocket(port: port)
      // What was done without all leaves says nothing of them.
      if run.transport == .http { order.remoteID += " over HTTP" }
    }
    let outcome = try perform(order, run, source, target)
    let after = (source: try source.read(), target: try target.read())
    do {
      try rules.take(run, outcome, before: before, after: after)
    } catch {
      throw Mismatch("\(error)\n  outcome: \(outcome.map { "\($0)" } ?? "cut")")
    }
    source.adopt(after.source)
    target.adopt(after.target)
    return before != after
  }

  /// Returns how it ended; nil if it was cut.
  private func perform(
    _ order: ReplicaOrder, _ run: ReplicaRun, _ source: World, _ target: World
  ) throws -> ReplicaOutcome? {
    let operation = ReplicaOperation.replicate(order)
    switch run.cut {
    case nil:
      let outcome = try source.ask(operation)
      if run.transport != .local { _ = try target.ask(.stopServing) }
      guard case .replicated(let outcome) = outcome else { throw Mismatch("the answer is \(outcome)") }
      return outcome
    case .connection(let microseconds):
      try source.tell(operation)
      usleep(UInt32(microseconds))
      _ = try target.ask(.stopServing)
      _ = try source.nextAnswer()
      try endRequests(of: target)
    case .source(let microseconds):
      try source.tell(operation)
      usleep(UInt32(microseconds))
      try source.restart(0)
      if run.transport != .local {
        _ = try target.ask(.stopServing)
        try endRequests(of: target)
      }
    case .target(let microseconds):
      try source.tell(operation)
      usleep(UInt32(microseconds))
      try target.restart(0)
      _ = try source.nextAnswer()
    }
    return nil
  }
}

extension ReplicaWorld {
  /// Ends what a cut connection has begun: a request that was received whole may still commit after the listener has stopped. Nothing but
  /// the end of its process is sure to come after that.
  private func endRequests(of target: World) throws { try target.restart(0) }
}

/// A world as one of several replicas. Its first process speaks for it.
extension World {
  func tell(_ operation: ReplicaOperation) throws { try workers[0].tell(.replica(operation)) }

  func nextAnswer() throws -> ReplicaAnswer { try answer(workers[0].nextAnswer()) }

  func ask(_ operation: ReplicaOperation) throws -> ReplicaAnswer {
    try tell(operation)
    return try nextAnswer()
  }

  private func answer(_ answer: Answer) throws -> ReplicaAnswer {
    guard case .replica(let answer) = answer else { throw Mismatch("the answer is \(answer)") }
    return answer
  }

  func serve() throws -> Int {
    let answer = try ask(.serve)
    guard case .serving(let port) = answer else { throw Mismatch("the answer is \(answer)") }
    return port
  }

  /// What the database holds.
  func read() throws -> ReplicaState {
    let answer = try ask(.state)
    guard case .state(let state) = answer else { throw Mismatch("the answer is \(answer)") }
    return state
  }

  /// What the database holds, which has to be what the model says.
  func state() throws -> ReplicaState {
    let state = try read()
    guard state.documents.keys.sorted() == model.documents.keys.sorted() else {
      throw Mismatch("\(state.documents.keys.sorted()) isn't \(model.documents.keys.sorted())")
    }
    for (id, document) in state.documents {
      func sorted(_ leaves: [Leaf]) -> [Leaf] { leaves.sorted { $0.revision < $1.revision } }
      let leaves = model.documents[id]?.leaves ?? []
      guard sorted(document.branches.map(\.leaf)) == sorted(leaves), document.current == model.current(id)
      else { throw Mismatch("\(id) is \(document.branches)\n  but right is \(leaves)") }
    }
    return state
  }

  /// Takes what a replication has left, after `ReplicaRules` has looked at it.
  func adopt(_ state: ReplicaState) {
    for (id, document) in state.documents {
      model.documents[id] = Model.Document(
        leaves: document.branches.map(\.leaf), sequence: document.sequence,
        expirationDay: model.documents[id]?.expirationDay, seen: document.seen)
    }
    model.lastSequence = state.lastSequence
  }

  /// Looks which tombstone is current of each document that has several leaves, all of them tombstones.
  func seeTombstones() throws {
    let unseen = model.documents.filter { _, document in
      document.leaves.count > 1 && document.leaves.allSatisfy(\.isDeleted)
        && document.seen?.leaves != Set(document.leaves.map(\.revision))
    }
    guard !unseen.isEmpty else { return }
    let state = try read()
    for id in unseen.keys { model.documents[id]?.seen = state.documents[id]?.seen }
  }
}

extension ReplicaState.Document {
  fileprivate var seen: (current: Leaf, leaves: Set<String>) {
    (current, Set(branches.map(\.leaf.revision)))
  }
}
