import StorageConformance
import TestSupport
import Touchstone

/// Draws the steps of a simulation from a seed.
package struct StepGenerator {
  private var random: SeededGenerator
  private let settings: World.Settings
  /// The engines that a database may go to.
  private let engines: [String]
  private let usesHTTP: Bool

  /// Draws from a seed. `usesHTTP` tells whether operations may go over HTTP.
  package init(seed: UInt64, _ settings: World.Settings, engines: [String], usesHTTP: Bool = true) {
    self.usesHTTP = usesHTTP
    random = SeededGenerator(seed: seed)
    self.settings = settings
    self.engines =
      settings.workers > 1 ? engines.filter { isShared(EngineName(rawValue: $0)) } : engines
  }

  private var worker: Int { mutating get { random.below(settings.workers) } }
  private var id: String { mutating get { "doc\(random.below(12))" } }
  private var word: String { mutating get { "wort\(random.below(20))x" } }

  private var content: Content {
    mutating get {
      let count = random.below(5)
      return Content(
        number: random.below(50), words: (0..<count).map { _ in word },
        blob: random.once(in: 5) ? "blob \(random.below(8))" : nil,
        padding: random.once(in: 10) ? random.below(30_000) : random.below(40))
    }
  }

  /// One of three operations that can go over HTTP does.
  package mutating func next() -> Step {
    let step = nextByCalls()
    guard usesHTTP, random.once(in: 3) else { return step }
    switch step {
    case .one(let worker, let operation) where operation.canGoOverHTTP:
      return .one(worker: worker, .overHTTP(operation))
    case .saveOnCurrent(let worker, let id, let isStale, let content, _) where content.blob == nil:
      return .saveOnCurrent(worker: worker, id: id, isStale: isStale, content, overHTTP: true)
    case .applyForeign(let worker, let id, let suffix, let onCurrent, let isDeleted, let content, _)
    where content.blob == nil:
      return .applyForeign(
        worker: worker, id: id, suffix: suffix, onCurrent: onCurrent, isDeleted: isDeleted, content,
        overHTTP: true)
    default: return step
    }
  }

  private mutating func nextByCalls() -> Step {
    switch random.below(122) {
    case 0..<18: .one(worker: worker, .save(id: id, content))
    case 18..<24:
      .saveOnCurrent(worker: worker, id: id, isStale: random.once(in: 4), content)
    case 24..<29: .one(worker: worker, .delete(id: id))
    case 29..<32: .one(worker: worker, .purge(id: id))
    case 32..<36: applyForeign()
    case 36..<38: .resolve(worker: worker, id: id)
    case 38..<40:
      .one(worker: worker, .setExpiration(id: id, day: random.once(in: 5) ? nil : random.below(9)))
    case 40..<41: .one(worker: worker, .purgeExpired(day: random.below(9)))
    case 41..<43: .one(worker: worker, .saveLocal(id: "local\(random.below(3))", random.below(100)))
    case 43..<45: .one(worker: worker, .createIndex)
    case 45..<47: .one(worker: worker, .createFullTextIndex)
    case 47: .one(worker: worker, .deleteIndex(SimulatedDatabase.valueIndex))
    case 48: .one(worker: worker, .deleteIndex(SimulatedDatabase.textIndex))
    case 49: .one(worker: worker, .compact)
    case 50..<54: saveAll()
    case 54..<60: .one(worker: worker, .document(id: id))
    case 60..<63: .one(worker: worker, .leaves(id: id))
    case 63..<65: .one(worker: worker, .local(id: "local\(random.below(3))"))
    case 65..<67: .one(worker: worker, .all)
    case 67..<69: .one(worker: worker, .changes)
    case 69..<75: query()
    case 75..<78: .one(worker: worker, .total)
    case 78..<86: .one(worker: worker, .match(word))
    case 86..<87: .one(worker: worker, .check)
    case 87..<90: .incrementTogether(id: id, times: 1 + random.below(5))
    case 90..<94: saveTogether()
    case 94..<96: .kill(worker: worker, microseconds: random.below(3_000), id: id, content)
    case 96..<99: .reopen(worker: worker)
    case 100..<108: byStatement()
    case 108..<112: byView()
    case 112..<116: find()
    case 116..<118: .one(worker: worker, .createFindIndex)
    case 118: withoutFindIndex()
    case 119..<122: .one(worker: worker, .spilled(from: random.once(in: 3) ? 1 : random.below(6_000)))
    default: random.once(in: 3) ? .convert(engine: random.pick(engines)) : .reopen(worker: worker)
    }
  }

  private mutating func applyForeign() -> Step {
    let digits = random.bytes(20).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
    return .applyForeign(
      worker: worker, id: id, suffix: digits.joined(), onCurrent: random.once(in: 2),
      isDeleted: random.once(in: 5), content)
  }

  private mutating func query() -> Step {
    let from = random.below(50)
    return .one(worker: worker, .query(from: from, through: from + random.below(10)))
  }

  private mutating func byStatement() -> Step {
    let from = random.below(50)
    let through = from + random.below(6)
    let operation: Operation
    switch random.below(8) {
    case 0..<3: operation = .updateWhere(from: from, through: through, adding: 1 + random.below(5))
    case 3: operation = .deleteWhere(from: from, through: through)
    case 4: operation = .tryDeleteWhere(from: from, through: through)
    default: operation = .insert(id: id, replaces: random.once(in: 2), number: from)
    }
    return .one(worker: worker, operation)
  }

  private mutating func byView() -> Step {
    let from = random.below(50)
    let rows = Operation.viewRows(from: from, through: from + random.below(10))
    return .one(worker: worker, random.once(in: 4) ? .viewTotal : rows)
  }

  private mutating func withoutFindIndex() -> Step {
    let id = SimulatedDatabase.findIndex
    return .one(worker: worker, random.once(in: 3) ? .purge(id: id) : .delete(id: id))
  }

  private mutating func find() -> Step {
    let from = random.below(50)
    return .one(worker: worker, .find(from: from, through: from + random.below(10)))
  }

  private mutating func saveAll() -> Step {
    var contents: [String: Content] = [:]
    for _ in 0..<(1 + random.below(8)) { contents[id] = content }
    return .one(worker: worker, .saveAll(contents))
  }

  private mutating func saveTogether() -> Step {
    var batches: [[String: Content]] = []
    for number in 0..<settings.workers {
      var contents: [String: Content] = [:]
      for _ in 0..<(1 + random.below(6)) { contents["own\(number)-\(random.below(6))"] = content }
      batches.append(contents)
    }
    return .saveTogether(batches)
  }
}
