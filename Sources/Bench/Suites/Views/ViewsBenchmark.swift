import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// A benchmark of the suite `views` at one size. It makes the runs on an engine and those of the limit.
struct ViewsBenchmark: Sendable {
  let kind: ViewsWorkload
  let size: Int
  let variant: ViewsWorkload.Variant
  let data: ViewsData
  let context: SuiteContext

  func workload() -> Workload {
    // A script is another process, which does nothing that bare C loops do.
    let hasLimit = (kind == .build || kind.step != nil) && variant.map == .swift && variant.key == .number
    return Workload(
      suite: "views", name: kind.rawValue, summary: kind.summary, parameters: variant.parameters,
      operations: operations, runsThreads: variant.map == .javascript,
      limit: hasLimit
        ? .init(name: { engine in (try? context.engine(engine))?.limitName }, prepare: limitTrial) : nil
    ) { try prepare($0) }
  }

  private var operations: Int {
    switch kind {
    case .build, .createIndex: size
    case .update1, .update10: changed
    case .keyLookup, .range: kind.repeats
    case .reduceTotal, .reduceGroups: repeats
    case .buildTravel: context.dataset?.count ?? 0
    }
  }

  /// The number of documents that change before an update.
  private var changed: Int { kind.step.map { (size + $0 - 1) / $0 } ?? 0 }

  /// A query that reads all rows is repeated less often among many.
  private var repeats: Int { max(1, min(kind.repeats, kind.repeats * 100_000 / max(size, 1))) }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try directory(engine, trial)
    let database = try data.open(engine, in: directory)
    return try database.closingOnFailure {
      let work = try work(database, seed: context.settings.seed &+ UInt64(trial.round))
      return Trial(
        timing: { try work() }, fileBytes: { try TrialDirectory.fileBytes(in: directory) },
        finish: { try database.close() })
    }
  }

  /// The directory of the database that a run uses.
  private func directory(_ engine: ProbedEngine, _ trial: TrialContext) throws -> String {
    let source: String
    switch kind {
    case .keyLookup, .range, .reduceTotal, .reduceGroups: return try data.indexed(engine, size)
    case .build, .createIndex: source = try data.documents(engine, size)
    case .update1, .update10: source = try data.changed(engine, size, variant, step: kind.step ?? 1)
    case .buildTravel:
      let dataset = try context.dataset(for: "views")
      source = try data.fixture("travel", engine) { try dataset.save(in: $0) }
    }
    try Fixtures.copy(source, to: trial.directory)
    return trial.directory
  }

  /// Prepares a run, and returns the part that is timed.
  private func work(_ database: Database, seed: UInt64) throws -> () throws -> Void {
    var random = SeededRandom(seed: seed)
    switch kind {
    case .build:
      let view = try data.view(database, variant)
      return {
        try RunMismatch.check("documents that were mapped", try view.updateIndex().documents, size)
        try RunMismatch.check("rows", try view.totalRows, size)
      }
    case .createIndex:
      return { try database.createIndex("rows", on: ViewsData.indexColumns(variant.key)) }
    case .update1, .update10:
      let view = try data.view(database, variant)
      return {
        let update = try view.updateIndex()
        try RunMismatch.check("documents that were mapped", update.documents, changed)
        try RunMismatch.check("rows", try view.totalRows, size)
      }
    case .buildTravel: return try buildTravel(database)
    case .keyLookup:
      let numbers = (0..<kind.repeats).map { _ in random.below(size) }
      return try reading(database, starts: numbers, rows: 1)
    case .range:
      let rows = min(ViewsData.rangeRows, size)
      let numbers = (0..<kind.repeats).map { _ in random.below(size - rows + 1) }
      return try reading(database, starts: numbers, rows: rows)
    case .reduceTotal, .reduceGroups: return try reducing(database)
    }
  }

  private func buildTravel(_ database: Database) throws -> () throws -> Void {
    let count = context.dataset?.count ?? 0
    let view = try database.view(ViewsData.viewName)
    if variant.map == .javascript {
      try ViewsData.saveDesign(database, map: "function (doc) { emit(doc.type, doc.name); }")
    } else {
      try view.setMap(version: "1") { document, emit in emit(document["type"], document["name"]) }
    }
    return {
      try RunMismatch.check("documents that were mapped", try view.updateIndex().documents, count)
      try RunMismatch.check("rows", try view.totalRows, count)
    }
  }

  // MARK: Reading

  /// Reads `rows` rows from each of the numbers on.
  private func reading(_ database: Database, starts: [Int], rows: Int) throws -> () throws -> Void {
    let expected = starts.reduce(0) { sum, start in
      (start..<start + rows).reduce(sum) { $0 + ViewsData.price($1) }
    }
    let view = try data.reading(database, .number)
    let query = try database.query(
      rows == 1
        ? "SELECT price FROM _ WHERE number = $from"
        : "SELECT price FROM _ WHERE number >= $from AND number <= $to")
    return {
      var sum = 0
      for start in starts {
        let (from, to) = (ViewsData.key(start), ViewsData.key(start + rows - 1))
        if variant.isQuery {
          for row in try query.run(["from": .int(Int64(from)), "to": .int(Int64(to))]) {
            sum += Int(row[0].int ?? 0)
          }
          continue
        }
        var query = view.query()
        query.mapOnly = true
        if rows == 1 {
          query.keys = [.int(Int64(from))]
        } else {
          query.startKey = .int(Int64(from))
          query.endKey = .int(Int64(to))
        }
        for row in try query.run() { sum += Int(row.value.int ?? 0) }
      }
      try RunMismatch.check("sum of the rows", sum, expected)
    }
  }

  private func reducing(_ database: Database) throws -> () throws -> Void {
    let isGrouped = kind == .reduceGroups
    let times = repeats
    let expected = (0..<size).reduce(0) { $0 + ViewsData.price($1) }
    let view = try data.reading(database, isGrouped ? .region : .number)
    let query = try database.query(
      isGrouped
        ? "SELECT SUM(price) AS total, region FROM _ WHERE region >= '' GROUP BY region"
        : "SELECT SUM(price) AS total FROM _ WHERE number >= 0")
    return {
      for _ in 0..<times {
        var sum = 0
        var groups = 0
        if variant.isQuery {
          for row in try query.run() {
            sum += Int(row[0].int ?? Int64(row[0].double ?? 0))
            groups += 1
          }
        } else {
          var query = view.query()
          if isGrouped { query.groupLevel = 1 }
          for row in try query.run() {
            sum += row.value.int.map { Int($0) } ?? Int(row.value.double ?? 0)
            groups += 1
          }
        }
        try RunMismatch.check("groups", groups, isGrouped ? min(ViewsData.regions, size) : 1)
        try RunMismatch.check("sum of the rows", sum, expected)
      }
    }
  }

  // MARK: The limit

  private func limitTrial(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let source =
      try kind.step.map { try data.changed(engine, size, variant, step: $0) }
      ?? data.empty(engine, size, variant)
    try Fixtures.copy(source, to: trial.directory)
    let layout = try data.layout(engine, trial.directory)
    let replay = try data.replay(size, variant, step: kind.step)
    let database = try LimitDatabase(layout.engine, path: layout.file, tables: layout.tables)
    return Trial(
      run: { .seconds(try replay.run(database)) }, finish: { withExtendedLifetime(database) {} })
  }
}
