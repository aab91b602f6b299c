import Foundation
import Storage

/// Runs a script on an engine and on sorted maps. Throws if they differ.
struct ScriptRun {
  /// The keyspaces of a state, by the number of their name.
  typealias Model = [Int: Table]

  struct Table: Equatable {
    var shape: KeyspaceShape
    var map = SortedMap()
  }

  private let script: Script
  private let open: () throws -> any StorageEngine
  private(set) var engine: any StorageEngine
  private(set) var model: Model = [:]
  private var snapshots: [(transaction: any ReadTransaction, model: Model)] = []

  static func name(_ number: Int) -> String { "name\(number)" }

  /// Makes a run on the file that `open` opens.
  init(_ script: Script, _ open: @escaping () throws -> any StorageEngine) throws {
    self.script = script
    self.open = open
    engine = try open()
  }

  /// Runs the whole script, compares the final state, and closes the file.
  mutating func go() throws {
    do {
      for step in script.steps {
        do { try perform(step) } catch { throw ConformanceFailure("step \(step.number): \(error)") }
      }
      while !snapshots.isEmpty { try endSnapshot() }
      try engine.read { try compare($0, model) }
      try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
    } catch {
      for (snapshot, _) in snapshots { snapshot.end() }
      try? engine.close()
      throw error
    }
    try engine.close()
  }

  private mutating func perform(_ step: Script.Numbered<Script.Step>) throws {
    switch step.item {
    case .transaction(let part):
      if let changed = try Self.write(part, to: engine, model, script.valueLimit, number: step.number) {
        model = changed
      }
      try engine.read { try compare($0, model) }
    case .group(let parts): try perform(parts, number: step.number)
    case .beginSnapshot:
      if snapshots.count > 5 { try endSnapshot() }
      snapshots.append((try engine.beginRead(), model))
    case .endSnapshot: try endSnapshot()
    case .reopen:
      while !snapshots.isEmpty { try endSnapshot() }
      try engine.close()
      engine = try open()
      try engine.read { try compare($0, model) }
    case .compact:
      guard try engine.maintenance.compactsInPlace else { return }
      try engine.maintenance.compact()
      try engine.read { try compare($0, model) }
    }
  }

  private mutating func endSnapshot() throws {
    guard !snapshots.isEmpty else { return }
    let (transaction, model) = snapshots.removeFirst()
    defer { transaction.end() }
    try compare(transaction, model)
  }

  /// Runs a part and returns the new state; nil if it was rolled back.
  private static func write(
    _ part: Script.Part, to engine: any StorageEngine, _ model: Model, _ valueLimit: Int, number: Int
  ) throws -> Model? {
    var changed: Model?
    do {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        var writer = ScriptWriter(transaction, model, valueLimit)
        for operation in part.operations {
          do { try writer.perform(operation.item) } catch {
            throw ConformanceFailure("operation \(operation.number): \(error)")
          }
        }
        if part.isRolledBack { throw DeliberateError(number: number) }
        changed = writer.model
      }
      try expect(!part.isRolledBack, "a transaction whose body threw returned")
    } catch let error as DeliberateError {
      try expectEqual(error.number, number, "the error of the body")
      return nil
    }
    return changed
  }

  /// Runs the parts at the same time, each on its own thread, waits for them, and compares the result.
  private mutating func perform(_ parts: [Script.Part], number: Int) throws {
    let results = Lock<[Int: Result<Model?, any Error>]>([:])
    let (come, ended) = (CountingSemaphore(), CountingSemaphore())
    let (engine, model, limit) = (engine, model, script.valueLimit)
    for (index, part) in parts.enumerated() {
      Thread.detachNewThread {
        come.signal()
        let result = Result {
          try Self.write(part, to: engine, model, limit, number: number * 10 + index)
        }
        results.withLock { $0[index] = result }
        ended.signal()
      }
    }
    for _ in parts { come.wait() }
    for _ in parts { ended.wait() }
    for (index, result) in results.withLock({ $0 }) {
      guard let changed = try result.get() else { continue }
      for name in 0..<Script.nameCount where name % parts.count == index { self.model[name] = changed[name] }
    }
    try engine.read { try compare($0, self.model) }
  }

  /// Compares a whole state, with scans in both directions.
  private func compare(_ transaction: any ReadTransaction, _ model: Model) throws {
    let keyspaces = try transaction.keyspaces()
    try expectEqual(keyspaces.keys.sorted(), model.keys.map(Self.name).sorted(), "the names of keyspaces")
    for (number, table) in model {
      let name = Self.name(number)
      guard let keyspace = keyspaces[name] else { continue }
      try expectEqual(keyspace.shape, table.shape, "the shape of \(name)")
      try expectEqual(transaction.count(of: keyspace), table.map.entries.count, "count of \(name)")
      for order in [ScanOrder.ascending, .descending] {
        let entries = table.map.entries
        var index = 0
        try transaction.scan(keyspace, order: order) { key, value in
          guard index < entries.count else { throw ConformanceFailure("\(name) has more entries, \(order)") }
          let wanted = entries[order == .ascending ? index : entries.count - 1 - index]
          guard key.isEqual(to: wanted.key.span.bytes), value.isEqual(to: wanted.value.span.bytes) else {
            let found = SortedMap.Entry(key, value)
            throw ConformanceFailure("entry \(index) of \(name), \(order): found \(found), wanted \(wanted)")
          }
          index += 1
          return true
        }
        try expectEqual(index, entries.count, "entries of \(name), \(order)")
      }
    }
  }

  /// The expected content of the file at the end, for comparison in another process.
  var content: Content {
    var content = Content()
    for (number, table) in model {
      content.tables[Self.name(number)] = .init(shape: table.shape, entries: table.map.entries)
    }
    return content
  }
}
