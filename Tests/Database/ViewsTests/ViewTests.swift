import Foundation
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Map functions, updates and queries of views through the facade.
@Suite struct ViewTests {
  private let databases = TestDatabases()

  @Test("the worked data set of the guide", arguments: someEngines)
  func workedQueries(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (id, key) in [
      ("22222", "two"), ("44444", "four"), ("11111", "one"), ("33333", "three"), ("55555", "five"),
    ] {
      try database.save(id, ["key": .string(key)])
    }
    let view = try database.view("numbers")
    try expect(view.setMap(version: "1") { document, emit in emit(document["key"]) })
    try expect(!view.setMap(version: "1") { document, emit in emit(document["key"]) })
    func keys(_ change: (inout ViewQuery) -> Void = { _ in }) throws -> [String] {
      var query = view.query()
      change(&query)
      return try query.run().map { $0.key.string ?? "?" }
    }
    try expect(keys(), equals: ["five", "four", "one", "three", "two"])
    try expect(keys { ($0.startKey, $0.endKey) = ("a", "one") }, equals: ["five", "four", "one"])
    try expect(
      keys { ($0.startKey, $0.endKey, $0.includesEnd) = ("a", "one", false) }, equals: ["five", "four"])
    try expect(
      keys { ($0.startKey, $0.endKey, $0.includesStart) = ("five", "one", false) }, equals: ["four", "one"])
    try expect(
      keys { ($0.isDescending, $0.startKey, $0.endKey) = (true, "o", "five") }, equals: ["four", "five"])
    try expect(
      keys { ($0.isDescending, $0.startKey, $0.endKey, $0.includesEnd) = (true, "o", "five", false) },
      equals: [
        "four"
      ])
    try expect(keys { $0.startKey = "g" }, equals: ["one", "three", "two"])
    try expect(keys { ($0.isDescending, $0.startKey) = (true, "g") }, equals: ["four", "five"])
    try expect(keys { $0.endKey = "g" }, equals: ["five", "four"])
    try expect(keys { ($0.isDescending, $0.endKey) = (true, "g") }, equals: ["two", "three", "one"])
    try expect(keys { $0.keys = ["two", "four"] }, equals: ["two", "four"])
    try expect(keys { $0.keys = ["four", "nope"] }, equals: ["four"])
    try expect(
      keys { ($0.startKey, $0.endKey, $0.prefixMatchLevel) = ("f", "f", 1) }, equals: ["five", "four"])
    try expect(
      keys {
        ($0.isDescending, $0.startKey, $0.endKey, $0.prefixMatchLevel) = (true, "f", "f", 1)
      }, equals: ["four", "five"])
    try expect(
      keys { ($0.startKey, $0.endKey, $0.skip, $0.limit) = ("five", "three", 1, 2) }, equals: ["four", "one"])
    try expect(keys { ($0.startKey, $0.endKey) = ("three", "one") }, equals: [])
  }

  @Test("updates, deletions, conflicts and purges change the rows", arguments: someEngines)
  func incremental(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document.id) }
    view.setReduce(.sum)
    func rows() throws -> [String] {
      var query = view.query()
      query.mapOnly = true
      return try query.run().map { "\($0.keyJSON) \($0.documentID ?? "-")" }
    }
    try expect(rows(), equals: [])
    for number in 1...5 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try expect(rows(), equals: ["1 d1", "2 d2", "3 d3", "4 d4", "5 d5"])
    try expect(view.updateIndex().documents, equals: 0)
    try database.save("d2", ["n": 9])
    try database.delete("d3")
    try expect(view.isStale)
    let update = try view.updateIndex()
    expect(update.documents == 2 && update.changedRows == 3, "\(update)")
    try expect(rows(), equals: ["1 d1", "4 d4", "5 d5", "9 d2"])
    try database.purge("d4")
    try expect(rows(), equals: ["1 d1", "5 d5", "9 d2"])
    try expect(database.check(), equals: [])
  }
}
