import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// Queries on each engine, compared with SQLite's JSON functions over the same documents as text.
  public static let query = Suite(
    name: "query",
    summary:
      "Queries over a travel data set, without indexes and with, beside SQLite's JSON functions over the same "
      + "documents as JSON text, with the matching expression indexes and the same settings.",
    workloadNames: (QueryCase.all + QueryCase.guide + QueryCase.analytical).map(\.name)
      + QueryWork.allCases.map(\.rawValue),
    usesDataset: true
  ) { context in
    let dataset = try context.dataset(for: "query")
    let data = QueryData(dataset, context)
    let queries = [.none, .all].flatMap { indexes in QueryCase.all.map { data.workload($0, indexes) } }
    let guide = QueryCase.guide.compactMap { query in
      query.index.map { data.workload(query, .only($0)) }
    }
    let analytical = QueryCase.analytical.map { data.workload($0, .none) }
    return queries + guide + analytical + QueryWork.allCases.flatMap { data.workloads($0) }
  }
}

/// The workloads that aren't queries.
enum QueryWork: String, CaseIterable {
  /// The queries of the guide after the first, each once, without indexes.
  case guideScan = "guide-scan"
  /// Parsing, planning and compiling the queries of the guide.
  case guideCompile = "guide-compile"
  /// Parsing and planning q5.
  case plan
  case createIndex = "create-index"
  case createFullTextIndex = "create-fulltext-index"
  case indexExists = "index-exists"
  /// Inserts all documents in one transaction, with 0, 1 and 4 indexes.
  case insert
  /// COUNT with a prefix of the ID.
  case countPrefix = "count-prefix"
  /// Scans whose condition rejects the rows.
  case reject
  /// Small documents in a database with a few of many megabytes.
  case largeBeside = "large-beside"
  /// LIKE with a pattern that begins with %, in index order.
  case likeSort = "like-sort"
  /// An inner query for each row, beside the equal join.
  case correlated
  /// ROW_NUMBER in index order, beside the rows alone.
  case rowNumber = "row-number"
  /// Sorting and grouping all routes, in memory and in temporary files.
  case spilled
  /// UPDATE, beside a save of each document.
  case update
}

/// The data that the workloads of a run share.
final class QueryData: Sendable {
  let dataset: LoadedDataset
  let context: SuiteContext
  private let likers: [String]
  private let ids: [String]
  /// The number of rows of each query in the first run. All other runs must find the same number.
  private let expected = Lock<[String: Int]>([:])
  /// The hash of the rows of each query in the first run on an engine.
  private let expectedRows = Lock<[String: Int]>([:])

  init(_ dataset: LoadedDataset, _ context: SuiteContext) {
    self.dataset = dataset
    self.context = context
    var liker: String?
    for number in stride(from: 0, to: dataset.count, by: 1) where liker == nil {
      let json = dataset.json(number)
      liker = (try? JSONValue(json: json))?["public_likes"].array?.first?.string
    }
    likers = [liker ?? "nobody"]
    let count = min(1_000, dataset.count)
    ids = (0..<count).map { dataset.idText($0 * dataset.count / count) }
  }

  // MARK: Databases

  func open(_ engine: ProbedEngine, _ directory: String) throws -> Database {
    try context.open("travel", engine, in: directory)
  }

  func database(_ name: String, _ indexes: QueryIndexes) throws -> Database {
    try filled(indexes.label, of: name) { database in
      try dataset.save(in: database)
      for index in indexes.list { try index.make(in: database) }
    }
  }

  private func table(_ indexes: QueryIndexes) throws -> JSONTable {
    let engine = context.engines["sqlite"]
    let directory = try context.fixtures.directory("query json \(indexes.label)") { directory in
      let table = try JSONTable(directory + "/json.sqlite", like: engine)
      try table.fill(dataset, indexes)
      table.close()
    }
    return try JSONTable(directory + "/json.sqlite", like: engine)
  }

  /// Throws unless these are the rows that the first engine found, in any order.
  func check(rows results: [QueryResults], of name: String) throws {
    let hash = try results.flatMap { try $0.map { try $0.json() } }.sorted().hashValue
    guard expectedRows.value(of: name, { hash }) == hash else {
      throw JSONTable.Failure(description: "\(name) gave other rows than on the engine before")
    }
  }

  /// Throws unless this is the number of rows of the run before, on any engine or in SQLite.
  private func check(_ name: String, _ rows: Int, times: Int) throws {
    let found = rows / times
    let before = expected.value(of: name) { found }
    // A part of the data set may have no rows for a query. SQLite then finds none either.
    guard found == before else {
      throw JSONTable.Failure(description: "\(name) gave \(found) rows, and \(before) before")
    }
  }

  // MARK: Queries

  func workload(_ query: QueryCase, _ indexes: QueryIndexes) -> Workload {
    let times = if case .none = indexes { query.repeats.plain } else { query.repeats.indexed }
    let parameters: [String?] = query.takesLiker ? likers : query.isLookup ? ids : [nil]
    let name = query.takesLiker ? "name" : "id"
    // An average adds in the order of the index, so its last digits depend on it.
    let key = query.index == nil ? "\(query.name) \(indexes.label)" : query.name
    return Workload(
      suite: "query", name: query.name, summary: query.summary,
      parameters: ["index": .string(indexes.label)], operations: times,
      limit: .init(name: { _ in "SQLite's JSON functions" }) { [self] _ in
        let table = try table(indexes)
        _ = try table.rows(query.sql, parameters, times: 1)
        return Trial(
          timing: {
            let rows = try table.rows(query.sql, parameters, times: times)
            try self.check(query.name, rows, times: times)
          }, finish: { table.close() })
      }
    ) { [self] trial in
      let database = try database(trial.engine, indexes)
      let prepared = try database.query(query.text)
      // Among few documents a scan is the better plan.
      if let index = query.index, dataset.count >= 500 {
        let plan = try prepared.explain().description
        guard plan.contains("Index \(index.name)") else { throw WrongPlan(description: plan) }
      }
      let values = parameters.map { $0.map { [name: JSONValue($0)] } ?? [:] }
      try check(rows: values.map { try prepared.run($0) }, of: key)
      return Trial(
        timing: {
          var rows = 0
          var sum = 0
          for _ in 0..<times {
            for value in values {
              let results = try prepared.run(value)
              rows += results.count
              sum &+= results.sum
            }
          }
          withExtendedLifetime(sum) {}
          try self.check(query.name, rows, times: times)
        }, finish: { try database.close() })
    }
  }

  // MARK: The rest

  func workloads(_ work: QueryWork) -> [Workload] {
    switch work {
    case .guideScan: [guideScan]
    case .guideCompile: [guideCompile]
    case .plan:
      [
        workload(work, "parses and plans q5", operations: 200, .all) { database in
          for _ in 0..<200 { _ = try database.query(QueryCase.join).explain() }
        }
      ]
    case .indexExists:
      [
        workload(work, "makes an index that is there", operations: 100, .all) { database in
          for _ in 0..<100 { _ = try database.createIndex("typeName", on: ["type", "name"]) }
        }, existsAfterReopening,
      ]
    case .countPrefix:
      [
        workload(work, "counts documents by a prefix of their ID", operations: 20, .none) {
          database in
          let query = try database.query("SELECT COUNT(*) AS n FROM _ WHERE META().id LIKE 'airline%'")
          for _ in 0..<20 { _ = try query.run() }
        }
      ]
    case .reject:
      [
        workload(
          work, "a scan that refuses every row", operations: dataset.count * 5, .none
        ) { database in
          let query = try database.query("SELECT name FROM _ WHERE type = 'nothing'")
          for _ in 0..<5 { _ = try query.run() }
        }
      ]
    case .createIndex:
      [
        changing(work, "makes an index on type and name", [:], operations: dataset.count, filled: true) {
          database in
          try database.createIndex("typeName", on: ["type", "name"])
        }
      ]
    case .createFullTextIndex:
      [
        changing(work, "makes a full-text index on name", [:], operations: dataset.count, filled: true) {
          database in
          try database.createFullTextIndex("names", on: ["name"])
        }
      ]
    case .largeBeside: [false, true].map { largeBeside(indexed: $0) }
    case .likeSort: [likeSort("early"), likeSort("late")]
    case .correlated: [correlated("subquery"), correlated("join")]
    case .rowNumber: [rowNumbers("window"), rowNumbers("rows")]
    case .spilled: [spilled("memory"), spilled("files")]
    case .update: [updateRoutes("statement"), updateRoutes("calls")]
    case .insert:
      [0, 1, 4].map { count in
        changing(
          work, "all documents in one transaction", ["indexes": .integer(count)], operations: dataset.count,
          filled: false, before: { for index in Self.plainIndexes.prefix(count) { try index.make(in: $0) } }
        ) { [self] in try dataset.save(in: $0) }
      }
    }
  }

  private static let plainIndexes =
    [QueryCase.indexes[4]] + QueryCase.indexes.filter { $0.unnest == nil && $0.name != "typeName" }

  private func workload(
    _ work: QueryWork, _ summary: String, operations: Int, _ indexes: QueryIndexes,
    _ body: @escaping @Sendable (Database) throws -> Void
  ) -> Workload {
    Workload(suite: "query", name: work.rawValue, summary: summary, operations: operations) { [self] trial in
      let database = try database(trial.engine, indexes)
      try body(database)
      return Trial(
        timing: { try body(database) }, finish: { try database.close() })
    }
  }

  /// A workload that changes its own database.
  private func changing(
    _ work: QueryWork, _ summary: String, _ parameters: Parameters, operations: Int, filled: Bool,
    before: @escaping @Sendable (Database) throws -> Void = { _ in },
    _ body: @escaping @Sendable (Database) throws -> Void
  ) -> Workload {
    Workload(
      suite: "query", name: work.rawValue, summary: summary, parameters: parameters, operations: operations
    ) { [self] trial in
      let database = try open(try context.engine(trial.engine), trial.directory)
      if filled { try dataset.save(in: database) }
      try before(database)
      return Trial(
        timing: { try body(database) }, finish: { try database.close() })
    }
  }
}

extension QueryResults {
  /// A sum that reads all columns of all rows.
  var sum: Int {
    var sum = 0
    let width = columnNames.count
    for row in self {
      for column in 0..<width {
        let value = row[column]
        if value.withUTF8({ sum &+= $0.count &+ Int($0.first ?? 0) }) == nil {
          if let int = value.int {
            sum &+= Int(int)
          } else if let double = value.double {
            sum &+= Int(truncatingIfNeeded: Int64(bitPattern: double.bitPattern))
          }
        }
      }
    }
    return sum
  }
}
