import ChildProcesses
import Foundation
import TestSupport
import Touchstone

/// A database, the processes that use it, and the model that says what is right.
package final class World {
  package struct Settings: Codable, Equatable, Sendable {
    /// The engine at the beginning.
    package var engine: String
    /// The processes.
    package var workers: Int
    /// Whether the last one opens the database for reading only.
    package var lastOnlyReads: Bool

    /// An engine that serves one process gets one.
    package init(engine: String, workers: Int, lastOnlyReads: Bool) {
      self.engine = engine
      self.workers = isShared(EngineName(rawValue: engine)) ? workers : 1
      self.lastOnlyReads = lastOnlyReads && self.workers > 1
    }
  }

  private let settings: Settings
  let directory: String
  private let place: SimulatedPlace
  var engine: EngineName
  var model = Model()
  var workers: [Worker] = []
  /// For each document the current revision before its last change, if there was one.
  private var stale: [String: String] = [:]

  /// Makes the database `test` in an empty directory.
  package init(_ settings: Settings, in directory: String) throws {
    self.settings = settings
    self.directory = directory
    place = SimulatedPlace(directory)
    engine = EngineName(rawValue: settings.engine)
    try place.make(engine)
    try openAll()
  }

  deinit {
    workers = []
    place.remove(engine)
  }

  private func canWrite(_ worker: Int) -> Bool {
    !(settings.lastOnlyReads && worker == settings.workers - 1)
  }

  private var writers: [Int] { (0..<settings.workers).filter(canWrite) }

  private func start(_ number: Int) throws -> Worker {
    try Worker("\(engine)", directory, isReadOnly: !canWrite(number))
  }

  /// Kills a process, and starts it again. Returns the answer to what it was told last, if it came before.
  @discardableResult
  func restart(_ number: Int) throws -> Answer? {
    let answer = try workers[number].kill()
    workers[number] = try start(number)
    // What the killed process was committing may appear late: a server may still be at it, and LMDB's next writer finds out what a
    // killed one hadn't told the readers. A later commit comes after that.
    if canWrite(number), SimulatedPlace.isServer(engine) || [.lmdb, .lmdbEncrypted].contains(engine) {
      try run(.saveLocal(id: "fence", 0), by: number)
    }
    return answer
  }

  private func openAll() throws { workers = try (0..<settings.workers).map(start) }

  private func closeAll() throws {
    for worker in workers { try worker.close() }
    workers = []
  }

  // MARK: Steps

  /// Does a step. Throws a `Mismatch` if an answer isn't right.
  package func run(_ step: Step) throws {
    switch step {
    case .one(let worker, let operation): try run(operation, by: worker)
    case .saveOnCurrent(let worker, let id, let isStale, let content, let overHTTP):
      let revision = isStale ? stale[id] : model.current(id)?.revision
      try run(.saveOnTop(id: id, revision: revision, content), by: worker, overHTTP: overHTTP ?? false)
    case .applyForeign(
      let worker, let id, let suffix, let onCurrent, let isDeleted, let content, let overHTTP):
      let parent = onCurrent ? model.current(id)?.revision : nil
      let generation = parent.map(Model.generation) ?? 0
      let history = ["\(generation + 1)-\(suffix)"] + [parent].compactMap { $0 }
      try run(
        .apply(id: id, history: history, isDeleted: isDeleted, content), by: worker,
        overHTTP: overHTTP ?? false)
    case .resolve(let worker, let id):
      guard let current = model.current(id), !current.isDeleted else { return }
      try run(.resolve(id: id, revision: current.revision), by: worker)
    case .incrementTogether(let id, let times): try incrementTogether(id, times)
    case .saveTogether(let batches): try saveTogether(batches)
    case .kill(let worker, let microseconds, let id, let content):
      try kill(worker, microseconds, id, content)
    case .reopen(let worker):
      try workers[worker].close()
      workers[worker] = try start(worker)
    case .convert(let name):
      try closeAll()
      let target = EngineName(rawValue: name)
      try place.convert(engine, to: target)
      engine = target
      try openAll()
    }
  }

  /// Each worker's answers to what can be asked, at the end.
  package func checkAll() throws {
    for worker in 0..<settings.workers {
      let questions: [Operation] =
        [
          .all, .changes, .total, .viewTotal, .query(from: 0, through: 1_000), .local(id: "local0"),
          .viewRows(from: 0, through: 1_000), .find(from: 0, through: 1_000),
          .spilled(from: 1), .check,
        ]
        + (0..<20).map { .match("wort\($0)x") } + model.documents.keys.sorted().map { .leaves(id: $0) }
      for question in questions { try run(question, by: worker) }
    }
    try closeAll()
  }

  private func run(_ operation: Operation, by worker: Int, overHTTP: Bool) throws {
    try run(overHTTP ? .overHTTP(operation) : operation, by: worker)
  }

  private func run(_ operation: Operation, by worker: Int) throws {
    let before = operation.changedDocument.flatMap { id in model.current(id).map { (id, $0.revision) } }
    let answer = try workers[worker].ask(operation)
    try model.take(operation, answer, canWrite: canWrite(worker))
    if let (id, revision) = before, model.current(id)?.revision != revision { stale[id] = revision }
  }

  private func incrementTogether(_ id: String, _ times: Int) throws {
    let operation = Operation.increment(id: id, times: times)
    for writer in writers { try workers[writer].tell(operation) }
    let answers = try writers.map { try workers[$0].nextAnswer() }
    let after = try workers[0].ask(.document(id: id))
    try model.takeIncrements(id, by: times * writers.count, answers, after: after)
  }

  private func saveTogether(_ batches: [[String: Content]]) throws {
    let pairs = zip(writers, batches)
    for (writer, batch) in pairs { try workers[writer].tell(.saveAll(batch)) }
    try model.takeTogether(try pairs.map { ($1, try workers[$0].nextAnswer()) })
  }

  private func kill(_ number: Int, _ microseconds: Int, _ id: String, _ content: Content) throws {
    let operation = Operation.save(id: id, content)
    guard canWrite(number) else { return }
    try workers[number].tell(operation)
    usleep(UInt32(microseconds))
    if let acknowledged = try restart(number) { return try model.take(operation, acknowledged) }
    try model.takeUncertain(id, content, after: try workers[number].ask(.document(id: id)))
  }
}

extension Operation {
  /// The document that it changes, if it is one.
  package var changedDocument: String? {
    switch self {
    case .save(let id, _), .saveOnTop(let id, _, _), .delete(let id), .apply(let id, _, _, _),
      .insert(let id, _, _):
      id
    case .overHTTP(let operation): operation.changedDocument
    default: nil
    }
  }
}
