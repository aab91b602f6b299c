import Foundation
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Views of design documents.
@Suite struct DesignDocumentTests {
  private let databases = TestDatabases()

  private func design(_ map: String, reduce: String? = nil) -> DocumentBody {
    var view: JSONObject = ["map": .string(map)]
    if let reduce { view["reduce"] = .string(reduce) }
    return .value(["language": "javascript", "views": ["v": .object(view)]])
  }

  @Test("a design document's views follow its changes", arguments: allEngines)
  func changes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 1...20 {
      try database.save("d\(number)", ["n": .int(Int64(number)), "even": .bool(number % 2 == 0)])
    }
    let view = try database.view("x/v")
    #expect(throws: ViewError.self) { _ = try view.query().run() }
    try database.save("_design/x", design("function (doc) { emit(doc.even, doc.n); }", reduce: "_sum"))
    #expect(try database.viewNames == ["x/v"])
    #expect(try view.query().run().map(\.valueJSON) == ["210"])
    var grouped = view.query()
    grouped.groupsByKey = true
    #expect(try grouped.run().map { "\($0.keyJSON) \($0.valueJSON)" } == ["false 100", "true 110"])
    try database.save(
      "_design/x",
      design(
        "(doc) => { if (doc.n > 18) emit([doc._id, doc._rev.length > 2], doc); }",
        reduce: "function (keys, values, rereduce) { return rereduce ? sum(values) : values.length; }"))
    #expect(try view.query().run().map(\.valueJSON) == ["2"])
    var rows = view.query()
    rows.mapOnly = true
    #expect(try rows.run().map(\.keyJSON) == ["[\"d19\",true]", "[\"d20\",true]"])
    #expect(try rows.run().first?.value.object?["n"] == 19)
    #expect(try database.check() == [])
    try database.delete("_design/x")
    #expect(throws: ViewError.self) { _ = try view.query().run() }
  }

  @Test("a script that fails is reported with its document")
  func faults() throws {
    let database = try databases.open(.lmdb)
    try database.save("good", ["n": 1])
    try database.save("bad", ["m": 1])
    try database.save("_design/x", design("function (doc) { emit(doc.n.toFixed(1), null); }"))
    let view = try database.view("x/v")
    #expect(try view.query().run().map(\.keyJSON) == ["\"1.0\""])
    #expect(view.lastUpdate.faults.map(\.documentID) == ["bad"])
    try database.save("_design/y", design("function (doc) { emit("))
    let broken = try database.view("y/v")
    #expect { _ = try broken.query().run() } throws: { ($0 as? ViewError)?.code == .invalidDesign }
  }
}
