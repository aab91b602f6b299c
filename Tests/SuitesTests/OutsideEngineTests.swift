import BenchmarkKit
import StorageConformance
import TestSupport

@testable import Suites

/// An engine that the package doesn't know, brought in as docs/engines.md says: it serves documents and queries, and stands
/// in the bench beside the others.
@Suite struct OutsideEngineTests {
  init() { Engines.register(MemoryEngine.type) }

  @Test func servesDocumentsIndexesAndQueries() throws {
    let directory = TemporaryDirectory()
    let options = DatabaseOptions(engine: "memory")
    let database = try Database.open("travel", in: directory.path, options: options)
    try database.createIndex("byType", on: ["type", "name"])
    for number in 0..<200 {
      var document = MutableDocument(id: "doc\(number)", ["type": "\(number % 2)", "name": "n\(number)"])
      try database.save(&document)
    }
    let query = try database.query("SELECT name FROM _ WHERE type = '1' ORDER BY name LIMIT 3")
    #expect("\(try query.explain())".contains("byType"))
    #expect(try query.run().map { $0["name"].string } == ["n1", "n101", "n103"])
    #expect(try database.check(deep: true).isEmpty)
    try database.close()

    let again = try Database.open("travel", in: directory.path, options: options)
    #expect(try again.document("doc7")?["name"].string == "n7")
    try again.close()
  }

  @Test func appearsInTheBenchBesideTheOthers() throws {
    let file = try ran(.engine, .travel, on: [.lmdb, "memory"], dataset: "synthetic-travel", documents: 60) {
      ($0.keys, $0.commits) = (100, 4)
    }
    let memory = file.results.filter { $0.engine == "memory" }
    #expect(Set(memory.map(\.workload)) == Set(file.results.filter { $0.engine == "lmdb" }.map(\.workload)))
    #expect(memory.allSatisfy { $0.metrics.seconds.median > 0 && $0.limit == nil })
    #expect(file.engines["memory"]?.library == "memory 1")
    #expect(ResultsTable(file.results, engines: ["lmdb", "memory"]).text().contains("memory"))
  }
}
