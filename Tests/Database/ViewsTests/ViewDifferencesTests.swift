import Foundation
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// The rows of the table in docs/views.md of what differs between CouchDB and the guide of Couchbase Lite 1.x: the Swift
/// calls follow the guide.
@Suite struct ViewDifferencesTests {
  private let databases = TestDatabases()

  /// A view of numbers with several documents for each key.
  private func numbers(_ engine: EngineName) throws -> (Database, View) {
    let database = try databases.open(engine)
    for (id, n) in [("a", 1), ("b", 1), ("c", 1), ("d", 2), ("e", 3)] {
      try database.save(id, ["n": .int(Int64(n))])
    }
    let view = try database.view("numbers")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document["n"]) }
    return (database, view)
  }

  private func rows(_ view: View, _ change: (inout ViewQuery) -> Void) throws -> [String] {
    var query = view.query()
    change(&query)
    return try query.run().map { "\($0.documentID ?? "-") \($0.keyJSON) \($0.valueJSON)" }
  }

  @Test("a limit of 0 is no limit", arguments: someEngines)
  func limit(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    try expect(rows(view) { $0.limit = 0 }.count, equals: 5)
  }

  @Test("a range whose end is before its start has no rows", arguments: someEngines)
  func impossibleRange(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    try expect(rows(view) { ($0.startKey, $0.endKey) = (3, 1) }, equals: [])
    try expect(rows(view) { ($0.isDescending, $0.startKey, $0.endKey) = (true, 1, 3) }, equals: [])
    view.setReduce(.sum)
    try expect(rows(view) { ($0.startKey, $0.endKey) = (3, 1) }, equals: [])
  }

  @Test("keys with a reducer and no grouping give one row", arguments: someEngines)
  func reducedKeys(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    view.setReduce(.sum)
    try expect(rows(view) { $0.keys = [3, 1] }, equals: ["- null 6"])
    try expect(rows(view) { ($0.keys, $0.groupsByKey) = ([3, 1, 7], true) }, equals: ["- 3 3", "- 1 3"])
    try expect(rows(view) { $0.keys = [] }, equals: [])
  }

  @Test("grouping without a reducer gives keys without values", arguments: someEngines)
  func groupedKeys(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    try expect(rows(view) { $0.groupLevel = 1 }, equals: ["- 1 null", "- 2 null", "- 3 null"])
  }

  @Test("with an excluded end, a document ID doesn't count", arguments: someEngines)
  func excludedEnd(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    try expect(rows(view) { ($0.endKey, $0.endKeyDocumentID) = (1, "b") }, equals: ["a 1 1", "b 1 1"])
    try expect(rows(view) { ($0.endKey, $0.endKeyDocumentID, $0.includesEnd) = (1, "b", false) }, equals: [])
    try expect(
      rows(view) { ($0.startKey, $0.startKeyDocumentID, $0.endKey) = (1, "b", 2) },
      equals: ["b 1 1", "c 1 1", "d 2 2"])
    try expect(
      rows(view) { ($0.isDescending, $0.startKey, $0.startKeyDocumentID) = (true, 1, "b") },
      equals: ["b 1 1", "a 1 1"])
  }

  @Test("` and ^ come before _", arguments: someEngines)
  func graveAndCircumflex(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (index, text) in ["_", "`", "^", "%", "+", " "].enumerated() {
      try database.save("d\(index)", ["t": .string(text)])
    }
    let view = try database.view("texts")
    try view.setMap(version: "1") { document, emit in emit(document["t"]) }
    try expect(view.query().run().map { $0.key.string }, equals: [" ", "`", "^", "_", "%", "+"])
    try view.setMap(version: "2", collation: .root) { document, emit in emit(document["t"]) }
    try expect(view.query().run().map { $0.key.string }, equals: [" ", "_", "%", "`", "^", "+"])
  }

  @Test("a value that a sum can't take makes the query throw, with the document", arguments: someEngines)
  func impossibleSum(_ engine: EngineName) throws {
    let (database, view) = try numbers(engine)
    view.setReduce(.sum)
    try expect(rows(view) { _ in }, equals: ["- null 8"])
    try database.save("x", ["n": ["an", "array"]])
    #expect { _ = try rows(view) { _ in } } throws: {
      let error = $0 as? ViewError
      return error?.code == .reduceFailed && error?.documentID == "x"
    }
    try expect(rows(view) { $0.endKey = 9 }, equals: ["- null 8"])
    try database.delete("x")
    try expect(rows(view) { _ in }, equals: ["- null 8"])
  }

  @Test("rows before an exception stay", arguments: someEngines)
  func exceptions(_ engine: EngineName) throws {
    struct Refused: Error {}
    let (_, view) = try numbers(engine)
    try view.setMap(version: "2") { document, emit in
      emit(document["n"])
      if document.id == "c" { throw Refused() }
      emit(100)
    }
    try expect(rows(view) { $0.endKey = 1 }, equals: ["a 1 null", "b 1 null", "c 1 null"])
    try expect(rows(view) { $0.startKey = 100 }.count, equals: 4)
    expect(view.lastUpdate.faults.map(\.documentID), equals: ["c"])
  }

  @Test(
    "a range without rows is reduced to no row, and keys that are no arrays are grouped as a whole",
    arguments: someEngines)
  func same(_ engine: EngineName) throws {
    let (_, view) = try numbers(engine)
    view.setReduce(.count)
    try expect(rows(view) { $0.startKey = 100 }, equals: [])
    try expect(rows(view) { $0.groupLevel = 3 }, equals: ["- 1 3", "- 2 1", "- 3 1"])
  }
}
