import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Query

/// Random queries over random documents: with indexes, without, and by the naive evaluator the same rows, in the same
/// order where ORDER BY decides it.
@Suite struct DifferentialTests {
  @Test(arguments: allEngines) func plansAgreeWithTheNaiveEvaluator(_ engine: EngineName) throws {
    for round in 0..<UInt64(isLong ? 200 : 6) {
      var random = RandomQuery(seed: testSeed + round)
      let count = 30
      var documents: [(id: String, body: JSONValue)] = []
      for number in 0..<count {
        documents.append(("d\(number)", try JSONValue(json: random.document(count))))
      }
      try withDatabase(engine) { database in
        try database.inBatch {
          for document in documents {
            try database.save(document.id, .value(document.body))
          }
        }
        for (number, index) in random.indexes().enumerated() {
          let name = "i\(number)"
          if let array = index.unnest {
            try database.createIndex(name, unnest: array, on: index.on, where: index.condition)
          } else {
            try database.createIndex(name, on: index.on, where: index.condition)
          }
        }
        for _ in 0..<(isLong ? 200 : 60) {
          let query = random.query()
          try compare(
            query.text, query.isOrdered, documents, database, "TOUCHSTONE_SEED=\(testSeed) round \(round)")
        }
      }
    }
  }

  private func compare(
    _ text: String, _ isOrdered: Bool, _ documents: [(id: String, body: JSONValue)], _ database: Database,
    _ where: String
  ) throws {
    let statement = try SelectStatement(parsing: text)
    let wanted = try naiveRows(statement, documents)
    for usesIndexes in [true, false] {
      var options = Query.Options()
      options.usesIndexes = usesIndexes
      let query = try database.query(text, options: options)
      let rows = try query.run().map { row -> [JSONValue?] in
        let object = try row.jsonObject()
        return row.columnNames.map { object[$0] }
      }
      let same =
        isOrdered
        ? rows.count == wanted.count && zip(rows, wanted).allSatisfy { naiveCompareRows($0, $1) == 0 }
        : isSame(rows, wanted)
      if !same {
        let plan = try database.query("EXPLAIN " + text, options: options).run().compactMap { $0[0].string }
        Issue.record(
          """
          \(`where`), \(usesIndexes ? "with" : "without") indexes
          \(text)
          \(plan.joined(separator: "\n"))
          indexes \(try database.indexes.map { "\($0)" }.joined(separator: "; "))
          gave   \(rows.map(describe))
          wanted \(wanted.map(describe))
          """)
      }
    }
  }

  private func isSame(_ a: [[JSONValue?]], _ b: [[JSONValue?]]) -> Bool {
    let left = a.sorted { naiveCompareRows($0, $1) < 0 }
    let right = b.sorted { naiveCompareRows($0, $1) < 0 }
    return left.count == right.count && zip(left, right).allSatisfy { naiveCompareRows($0, $1) == 0 }
  }

  private func describe(_ row: [JSONValue?]) -> String {
    "["
      + row.map { value in value.map { (try? $0.canonicalJSON()) ?? "?" } ?? "missing" }.joined(
        separator: ", ") + "]"
  }
}
