import BenchmarkKit
import Foundation
import Storage
import StorageConformance
import StorageLMDB
import TestSupport
import Testing
import Touchstone

@testable import Suites

/// An engine that the package doesn't know, brought in as docs/engines.md says: it serves documents and queries, and stands
/// in the bench beside the others.
@Suite struct OutsideEngineTests {
  init() { Engines.register(StrictEngine.type(over: LMDBEngines.lmdb, name: "outside")) }

  @Test func servesDocumentsIndexesAndQueries() throws {
    let directory = TemporaryDirectory()
    let options = DatabaseOptions(engine: "outside")
    let database = try Database.open("travel", in: directory.path, options: options)
    try database.createIndex("byType", on: ["type", "name"])
    for number in 0..<200 {
      var document = MutableDocument(id: "doc\(number)", ["type": "\(number % 2)", "name": "n\(number)"])
      try database.save(&document)
    }
    let query = try database.query("SELECT name FROM _ WHERE type = '1' ORDER BY name LIMIT 3")
    try expect("\(try query.explain())".contains("byType"))
    try expect(query.run().map { $0["name"].string }, equals: ["n1", "n101", "n103"])
    try expect(database.check(deep: true).isEmpty)
    try database.close()

    let again = try Database.open("travel", in: directory.path, options: options)
    try expect(again.document("doc7")?["name"].string, equals: "n7")
    try again.close()
  }

  @Test func appearsInTheBenchBesideTheOthers() throws {
    let settings = BenchSettings(
      engines: [try Engines.type(.lmdb), try Engines.type("outside")], samples: 1,
      workDirectory: NSTemporaryDirectory(), dataset: "synthetic-travel", documents: 60, keys: 100,
      commits: 4, evictsCaches: false)
    let file = try BenchRun(settings, version: "0.1.0+test").run([.engine, .travel])
    try expect(ResultsSchema.faults(in: try file.encoded()), equals: [])
    let outside = file.results.filter { $0.engine == "outside" }
    expect(
      Set(outside.map(\.workload)), equals: Set(file.results.filter { $0.engine == "lmdb" }.map(\.workload)))
    expect(outside.allSatisfy { $0.metrics.seconds.median > 0 && $0.limit == nil })
    expect(file.engines["outside"]?.library, equals: file.engines["lmdb"]?.library)
    expect(ResultsTable(file.results, engines: ["lmdb", "outside"]).text().contains("outside"))
  }
}
