import BenchmarkKit
import Touchstone

// Cases that users of Couchbase Lite reported as slow. With the whole data set they have the sizes of the
// reports. With fewer documents they are smaller.
extension QueryData {
  /// A run with a plan that it shouldn't have.
  struct WrongPlan: Error, CustomStringConvertible {
    let description: String
  }

  /// A number from a report, scaled to the number of documents in use.
  private func scaled(_ number: Int, least: Int) -> Int {
    max(least, min(number, number * dataset.count / 29_396))
  }

  func filled(
    _ name: String, of engineName: String, _ fill: (Database) throws -> Void
  ) throws -> Database {
    let engine = try context.engine(engineName)
    let directory = try context.filled(
      "query \(name) \(engineName)", open: { try open(engine, $0) }, fill: fill)
    return try open(engine, directory)
  }

  // MARK: Large documents

  /// 1,000 small documents and eight of 15 MB. A query with an index doesn't read the large ones.
  func largeBeside(indexed: Bool) -> Workload {
    Workload(
      suite: "query", name: QueryWork.largeBeside.rawValue,
      summary: "10 of 1,000 small documents beside eight of 15 MB",
      parameters: ["index": indexed ? "value" : "none"], operations: indexed ? 100 : 1
    ) { [self] trial in
      let database = try filled("large", of: trial.engine) { try fillLarge($0) }
      let query = try database.query(
        "SELECT name FROM _ WHERE type = 'small' AND n = 7", options: .init(usesIndexes: indexed))
      let plan = try query.explain().description
      guard plan.contains("Index byN") == indexed else { throw WrongPlan(description: plan) }
      return Trial(
        timing: {
          for _ in 0..<(indexed ? 100 : 1) {
            let count = try query.run().count
            guard count == 10 else { throw WrongPlan(description: "\(count) rows instead of 10: \(plan)") }
          }
        }, finish: { try database.close() })
    }
  }

  private func fillLarge(_ database: Database) throws {
    let line = #""0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghijklmnopqrstuvwxyz""#
    let lines = scaled(15_000_000, least: 200_000) / (line.utf8.count + 1)
    let text = Array(repeating: line, count: lines).joined(separator: ",")
    for number in 0..<8 {
      try database.save("large\(number)", .json(Array(#"{"type":"large","n":7,"text":[\#(text)]}"#.utf8)))
    }
    try database.inBatch {
      for number in 0..<1_000 {
        try database.save(
          "small\(number)",
          .json(Array(#"{"type":"small","n":\#(number % 100),"name":"small \#(number)"}"#.utf8)))
      }
    }
    try database.createIndex("byN", on: ["type", "n"])
  }

  // MARK: Patterns

  /// `LIKE '%words%'` over 200,000 names in index order, with LIMIT 10. `place` says whether the matches are
  /// at the beginning or at the end.
  func likeSort(_ place: String) -> Workload {
    let count = scaled(200_000, least: 1_000)
    return Workload(
      suite: "query", name: QueryWork.likeSort.rawValue,
      summary: "LIKE '%words%' over 200,000 names, ORDER BY, LIMIT 10",
      parameters: ["match": .string(place)], operations: place == "early" ? 100 : 1
    ) { [self] trial in
      let database = try filled("names", of: trial.engine) { database in
        try database.inBatch {
          for number in 0..<count {
            let words = number < 100 ? "early birds" : number >= count - 100 ? "late birds" : "other birds"
            let digits = String(number + 1_000_000).dropFirst()
            try database.save(
              "name\(number)", .json(Array(#"{"name":"N\#(digits) and \#(words) there"}"#.utf8)))
          }
        }
        try database.createIndex("byName", on: ["name"])
      }
      let query = try database.query(
        "SELECT name FROM _ WHERE name LIKE $pattern ORDER BY name LIMIT 10")
      let plan = try query.explain().description
      guard plan.contains("covering") else { throw WrongPlan(description: plan) }
      let times = place == "early" ? 100 : 1
      return Trial(
        timing: {
          for _ in 0..<times {
            let rows = try query.run(["pattern": .string("%\(place.uppercased()) birds%")]).count
            guard rows == 10 else { throw WrongPlan(description: "\(rows) rows instead of 10: \(plan)") }
          }
        }, finish: { try database.close() })
    }
  }

  // MARK: Indexes

  /// Makes an index that exists already, as the first operation after opening.
  var existsAfterReopening: Workload {
    Workload(
      suite: "query", name: QueryWork.indexExists.rawValue, summary: "makes an index that is there",
      parameters: ["first": "after opening"], operations: 1
    ) { [self] trial in
      let database = try database(trial.engine, .all)
      return Trial(
        timing: {
          let isNew = try database.createIndex("typeName", on: ["type", "name"])
          guard !isNew else { throw WrongPlan(description: "the index wasn't there") }
        }, finish: { try database.close() })
    }
  }
}
