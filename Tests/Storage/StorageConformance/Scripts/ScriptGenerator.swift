import Storage

/// Generates scripts.
struct ScriptGenerator {
  private var random: SeededGenerator
  private var lastNumber = 0

  /// The script of that number for a seed.
  static func script(seed: UInt64, _ number: Int, transactions: Int = 40) -> Script {
    var generator = ScriptGenerator(random: SeededGenerator(seed: seed &+ UInt64(number) &* 0x9E37_79B9))
    return generator.script(transactions)
  }

  private init(random: SeededGenerator) { self.random = random }

  private mutating func numbered<Item: Sendable>(_ item: Item) -> Script.Numbered<Item> {
    lastNumber += 1
    return .init(number: lastNumber, item: item)
  }

  private mutating func script(_ transactions: Int) -> Script {
    var steps: [Script.Numbered<Script.Step>] = []
    var done = 0
    // Makes keyspaces first, so that the first transaction already has some.
    let shapes = KeyspaceShape.allCases.enumerated().map {
      numbered(ScriptOperation.createKeyspace(name: $0.offset, $0.element))
    }
    steps.append(numbered(.transaction(.init(operations: shapes, isRolledBack: false))))
    while done < transactions {
      switch random.below(20) {
      case 0:
        let writers = 2 + random.below(2)
        steps.append(
          numbered(.group((0..<writers).map { part(names: names(of: $0, writers), 1 + random.below(8)) })))
        done += writers
      case 1, 2: steps.append(numbered(.beginSnapshot))
      case 3: steps.append(numbered(.endSnapshot))
      case 4 where random.once(in: 3): steps.append(numbered(.reopen))
      case 5 where random.once(in: 8): steps.append(numbered(.compact))
      default:
        steps.append(numbered(.transaction(part(names: Array(0..<Script.nameCount), size()))))
        done += 1
      }
    }
    return Script(steps: steps)
  }

  private func names(of writer: Int, _ writers: Int) -> [Int] {
    (0..<Script.nameCount).filter { $0 % writers == writer }
  }

  /// The number of operations in a transaction: mostly a few, sometimes enough for many pages.
  private mutating func size() -> Int {
    switch random.below(12) {
    case 0: 0
    case 1: 60 + random.below(140)
    default: 1 + random.below(20)
    }
  }

  private mutating func part(names: [Int], _ count: Int) -> Script.Part {
    var operations: [Script.Numbered<ScriptOperation>] = []
    while operations.count < count {
      for operation in operationsOfOneKind(names) { operations.append(numbered(operation)) }
    }
    return .init(operations: operations, isRolledBack: random.once(in: 6))
  }

  private mutating func operationsOfOneKind(_ names: [Int]) -> [ScriptOperation] {
    let name = random.pick(names)
    switch random.below(40) {
    case 0: return [.createKeyspace(name: name, random.pick(KeyspaceShape.allCases))]
    case 1:
      // Mostly followed by making it again, perhaps with another shape.
      let drop = ScriptOperation.dropKeyspace(name: name)
      return random.once(in: 4)
        ? [drop] : [drop, .createKeyspace(name: name, random.pick(KeyspaceShape.allCases))]
    case 2..<10: return [.put(name: name, key: key(), value())]
    case 10..<13: return [.insert(name: name, key: key(), value())]
    case 13..<15:
      // Ascending keys. Some are out of order.
      let first = random.below(200)
      return (0..<(1 + random.below(6))).map {
        .append(name: name, key: ScriptKey(number: first + $0 * 16 + 3), value())
      }
    case 15..<20: return [.delete(name: name, key: key())]
    case 20, 21: return [.deleteRange(name: name, range(isNarrow: true))]
    case 22: return [.deleteRange(name: name, range(isNarrow: !random.once(in: 4)))]
    case 23:
      // Allocates pages and frees them in the same transaction.
      let key = key()
      let large = ScriptValue(count: 5_000 + random.below(200_000), start: random.below(65_537))
      return [.put(name: name, key: key, large), .delete(name: name, key: key)]
    case 24:
      // Mostly into an empty keyspace, as copies and index builds do.
      let entries = (0..<(random.once(in: 3) ? random.below(150) : random.below(10))).map { _ in
        ScriptEntry(key: key(), value: value())
      }
      let end = random.pick([ScriptLoadEnd.well, .well, .well, .well, .outOfOrder, .thrown])
      let load = ScriptOperation.load(name: name, entries, end)
      let all = ScriptRange(lower: .unbounded, upper: .unbounded, prefix: nil)
      switch random.below(4) {
      case 0: return [.deleteRange(name: name, all), load]
      case 1:
        return [
          .dropKeyspace(name: name), .createKeyspace(name: name, random.pick(KeyspaceShape.allCases)), load,
        ]
      default: return [load]
      }
    case 25: return [.refuseKey(name: name, bytes: random.pick([0, 512, 513, 600, 5_000]))]
    case 26..<29: return [.read(name: name, key: key())]
    case 29..<33:
      return [
        .scan(
          name: name, range(isNarrow: random.once(in: 2)),
          random.pick([ScanOrder.ascending, .descending, .stored]), random.pick([ScanFetch.entries, .keys]),
          limit: random.once(in: 2) ? .max : 1 + random.below(10))
      ]
    case 33..<36:
      return [.walk(name: name, range(isNarrow: false), seed: random.next(), steps: 2 + random.below(25))]
    default:
      return [.nest(names: (0..<(1 + random.below(5))).map { _ in random.pick(names) }, seed: random.next())]
    }
  }

  private mutating func key() -> ScriptKey { ScriptKey(number: random.below(300)) }

  private mutating func value() -> ScriptValue {
    let count =
      switch random.below(40) {
      case 0: 0
      case 1: 100_000 + random.below(300_000)
      case 2, 3: random.below(30_000)
      // Sizes close to that of a page, or of a part of it.
      case 4, 5: random.pick([1_000, 2_000, 4_000, 8_140]) + random.below(120)
      default: random.below(200)
      }
    return ScriptValue(count: count, start: random.below(65_537))
  }

  private mutating func range(isNarrow: Bool) -> ScriptRange {
    if isNarrow {
      let key = key()
      if random.once(in: 2) {
        return ScriptRange(lower: .inclusive(key), upper: .unbounded, prefix: 2 + random.below(3))
      }
      return ScriptRange(
        lower: .inclusive(key), upper: .exclusive(ScriptKey(number: key.number + 3)), prefix: nil)
    }
    func bound(_ random: inout SeededGenerator) -> ScriptRange.Bound {
      let key = ScriptKey(number: random.below(300))
      switch random.below(3) {
      case 0: return .unbounded
      case 1: return .inclusive(key)
      default: return .exclusive(key)
      }
    }
    return ScriptRange(
      lower: bound(&random), upper: bound(&random), prefix: random.once(in: 10) ? random.below(4) : nil)
  }
}
