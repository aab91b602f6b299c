import Foundation
import StorageConformance
import TestSupport
import Testing

@testable import Touchstone
@testable import Views

/// Live queries of views, update modes, asynchronous runs.
@Suite struct LiveViewTests {
  private let databases = TestDatabases()

  private final class Heard: Sendable {
    let rows = Lock<[[String]]>([])

    func take(_ outcome: LiveViewQuery.Outcome) {
      guard let results = try? outcome.get() else { return rows.withLock { $0.append(["error"]) } }
      rows.withLock { $0.append(results.map(\.keyJSON)) }
    }

    func last() -> [String]? { rows.withLock { $0.last } }
  }

  @Test("a live query reports rows when they change, and only then", arguments: someEngines)
  func live(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"]) }
    let heard = Heard()
    let live = try database.observe(view.query(), updateInterval: .milliseconds(1)) { heard.take($0) }
    eventually { heard.last() == [] }
    try database.save("a", ["n": 1])
    eventually { heard.last() == ["1"] }
    // No row of this document.
    try database.save("b", ["m": 1])
    try database.inBatch {
      for number in 2...9 { try database.save("c\(number)", ["n": .int(Int64(number))]) }
    }
    eventually { heard.last()?.count == 9 }
    try database.purge("a")
    eventually { heard.last()?.count == 8 }
    try view.setMap(version: "2") { document, emit in emit(document.id) }
    eventually { heard.last()?.first == "\"b\"" }
    let reports = heard.rows.withLock { $0 }
    for (before, after) in zip(reports, reports.dropFirst()) { expect(before != after) }
    live.cancel()
  }

  @Test("a live query runs once for commits that come together, and once for another reducer")
  func coalesced() throws {
    let database = try databases.open(.lmdb)
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document["n"]) }
    view.setReduce(.count)
    let values = Lock<[String]>([])
    let interval = Duration.seconds(2)
    let live = try database.observe(view.query(), updateInterval: interval) { outcome in
      values.withLock { $0.append((try? outcome.get().first?.valueJSON) ?? "none") }
    }
    eventually { values.withLock { $0 } == ["none"] }
    // All of these come within one interval, so few runs see them.
    for number in 1...50 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    eventually { values.withLock { $0.last } == "50" }
    expect(live.runCount <= 10, "\(live.runCount) runs for 50 commits")
    view.setReduce(.sum)
    eventually { values.withLock { $0.last } == "1275" }
    live.cancel()
  }

  @Test("update modes: before, never, after", arguments: someEngines)
  func modes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"]) }
    func count(_ mode: ViewUpdateMode) throws -> Int {
      var query = view.query()
      query.updateMode = mode
      return try query.run().count
    }
    // A view that was never indexed is indexed nevertheless.
    try expect(count(.never), equals: 1)
    try database.save("b", ["n": 2])
    try expect(count(.never), equals: 1)
    try expect(view.isStale)
    try expect(count(.after), equals: 1)
    eventually { (try? view.isStale) == false }
    try expect(count(.never), equals: 2)
    let results = try view.query().run()
    let unchanged = try view.query().runIfChanged(since: results.lastSequenceChangedAt)
    expect(unchanged == nil)
    try database.save("c", ["m": 1])
    let same = try view.query().runIfChanged(since: results.lastSequenceChangedAt)
    expect(same == nil)
    try database.save("c", ["n": 1])
    try expect(view.query().runIfChanged(since: results.lastSequenceChangedAt)?.count, equals: 3)
    try expect(results.isStale)
    expect(!results.wasStale)
  }

  @Test("an asynchronous run gives the same rows", arguments: [EngineName.sqlite, .lmdb])
  func asynchronous(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    for number in 0..<50 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document) }
    let results = try await view.query().run()
    expect(results.count, equals: 50)
    expect(results[7].value.object?["_id"]?.string, equals: "d7")
  }

  @Test("the rows of a view in a batch are those of the batch", arguments: someEngines)
  func batches(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("n")
    try view.setMap(version: "1") { document, emit in emit(document["n"]) }
    try database.save("a", ["n": 1])
    struct Undo: Error {}
    do {
      try database.inBatch {
        try database.save("b", ["n": 2])
        try expect(view.query().run().count, equals: 2)
        throw Undo()
      }
    } catch is Undo {}
    try expect(view.query().run().count, equals: 1)
    try expect(database.check(), equals: [])
  }
}
