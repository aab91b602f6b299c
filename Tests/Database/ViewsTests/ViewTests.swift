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
    #expect(try view.setMap(version: "1") { document, emit in emit(document["key"]) })
    #expect(try !view.setMap(version: "1") { document, emit in emit(document["key"]) })
    func keys(_ change: (inout ViewQuery) -> Void = { _ in }) throws -> [String] {
      var query = view.query()
      change(&query)
      return try query.run().map { $0.key.string ?? "?" }
    }
    #expect(try keys() == ["five", "four", "one", "three", "two"])
    #expect(try keys { ($0.startKey, $0.endKey) = ("a", "one") } == ["five", "four", "one"])
    #expect(
      try keys { ($0.startKey, $0.endKey, $0.includesEnd) = ("a", "one", false) } == ["five", "four"])
    #expect(
      try keys { ($0.startKey, $0.endKey, $0.includesStart) = ("five", "one", false) } == ["four", "one"])
    #expect(
      try keys { ($0.isDescending, $0.startKey, $0.endKey) = (true, "o", "five") } == ["four", "five"])
    #expect(
      try keys { ($0.isDescending, $0.startKey, $0.endKey, $0.includesEnd) = (true, "o", "five", false) } == [
        "four"
      ])
    #expect(try keys { $0.startKey = "g" } == ["one", "three", "two"])
    #expect(try keys { ($0.isDescending, $0.startKey) = (true, "g") } == ["four", "five"])
    #expect(try keys { $0.endKey = "g" } == ["five", "four"])
    #expect(try keys { ($0.isDescending, $0.endKey) = (true, "g") } == ["two", "three", "one"])
    #expect(try keys { $0.keys = ["two", "four"] } == ["two", "four"])
    #expect(try keys { $0.keys = ["four", "nope"] } == ["four"])
    #expect(
      try keys { ($0.startKey, $0.endKey, $0.prefixMatchLevel) = ("f", "f", 1) } == ["five", "four"])
    #expect(
      try keys {
        ($0.isDescending, $0.startKey, $0.endKey, $0.prefixMatchLevel) = (true, "f", "f", 1)
      } == ["four", "five"])
    #expect(
      try keys { ($0.startKey, $0.endKey, $0.skip, $0.limit) = ("five", "three", 1, 2) } == ["four", "one"])
    #expect(try keys { ($0.startKey, $0.endKey) = ("three", "one") } == [])
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
    #expect(try rows() == [])
    for number in 1...5 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    #expect(try rows() == ["1 d1", "2 d2", "3 d3", "4 d4", "5 d5"])
    #expect(try view.updateIndex().documents == 0)
    try database.save("d2", ["n": 9])
    try database.delete("d3")
    #expect(try view.isStale)
    let update = try view.updateIndex()
    #expect(update.documents == 2 && update.changedRows == 3, "\(update)")
    #expect(try rows() == ["1 d1", "4 d4", "5 d5", "9 d2"])
    try database.purge("d4")
    #expect(try rows() == ["1 d1", "5 d5", "9 d2"])
    #expect(try database.check() == [])
  }
}
