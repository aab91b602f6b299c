import TestSupport

@testable import Views

/// Updates in several threads and processes, and updates that are killed.
@Suite("Updates of views beside others, and killed ones", .serialized) struct KillTests {
  private let directory = TemporaryDirectory()

  private func open(_ engine: EngineName, _ directory: TemporaryDirectory) throws -> (Database, [View]) {
    let database = try Database.open(
      "test", in: directory.path, options: options(engine, durability: .normal))
    let views = try TestView.all.map { try $0.set(in: database, version: 1) }
    for view in views { view.setReduce(view.name == "many" || view.name == "g/parts" ? .stats : .count) }
    return (database, views)
  }

  /// All that is stored of a view: keys and values of its three keyspaces, one after the other.
  private func stored(_ view: View) throws -> [[UInt8]] {
    try view.indexes.store.read { snapshot in
      let transaction = try snapshot.storage
      guard let record = try ViewRecord.read(view.name, in: transaction) else { return [] }
      let tables = try ViewTables(record, of: view.name, in: transaction)
      var entries = [Array("\(record.stage) \(record.lastSequence)".utf8)]
      func add(_ key: RawSpan, _ value: RawSpan) -> Bool {
        entries += [[UInt8](copying: key), [UInt8](copying: value)]
        return true
      }
      try tables.rows.scan(.all, order: .ascending, in: transaction) { add($0, $1) }
      entries.append(Array("sources".utf8))
      try transaction.scan(tables.sources, .all) { add($0, $1) }
      entries.append(Array("reductions".utf8))
      try tables.reductions.scan(.all, order: .ascending, in: transaction) { add($0, $1) }
      for rows in [tables.rows, tables.reductions] { try expect(rows.check(in: transaction), equals: []) }
      return entries
    }
  }

  /// Updates the views, and compares what is stored with what a fresh build stores.
  private func compareWithFresh(_ views: [View], _ what: String) throws {
    for view in views { try view.updateIndex() }
    for view in views {
      let updated = try stored(view)
      try view.deleteIndex()
      try view.updateIndex()
      let fresh = try stored(view)
      if updated != fresh {
        let place =
          zip(updated, fresh).enumerated().first { $1.0 != $1.1 }?.offset ?? min(updated.count, fresh.count)
        func text(_ entries: [[UInt8]]) -> String {
          entries.dropFirst(place).first.map {
            $0.prefix(200).map { String($0, radix: 16) }.joined(separator: " ")
          }
            ?? "nothing"
        }
        Issue.record(
          "\(what), \(view.name): \(updated.count) entries, \(fresh.count) of a fresh build; at \(place) (reductions from \(fresh.firstIndex(of: Array("reductions".utf8)) ?? -1)): \(text(updated)), not \(text(fresh))"
        )
      }
      expect(updated.count > 1)
    }
  }

  @Test("after a kill the next update gives what a fresh build gives", arguments: someEngines)
  func kills(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    var lastSequence: UInt64 = 0
    var updated = 0
    for round in 0..<times(10, sanitized: 30, long: 200) {
      let what = "TOUCHSTONE_SEED=\(testSeed), round \(round)"
      let child = try startChild(.database, "views", "write", "\(engine)", directory.path, "\(round * 17)")
      try child.waitForOutput(lines: 1 + random.below(4))
      usleep(UInt32(random.below(30_000)))
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(what): \(child.outputText.suffix(300))")
      let (database, views) = try open(engine, directory)
      try expect(database.check(), equals: [], "\(what)")
      try expect(database.lastSequence >= lastSequence)
      lastSequence = try database.lastSequence
      if try views.contains(where: { try $0.isStale }) { updated += 1 }
      try compareWithFresh(views, what)
      if round % 7 == 6 { try database.compact() }
      try database.close()
    }
    expect(updated > (isShort ? 1 : 5), "only \(updated) kills came in the middle of something")
  }

  @Test("two processes update the same views while documents change", arguments: sharedEngines)
  func twoProcesses(_ engine: EngineName) throws {
    let (database, views) = try open(engine, directory)
    try database.changeTestDocuments(0)
    let child = try startChild(.database, "views", "update", "\(engine)", directory.path)
    try child.waitForOutput()
    for number in 1..<times(36, sanitized: 60, long: 900) {
      try database.changeTestDocuments(number)
      let place = number / 3 % views.count
      let view = views[place]
      if number % 3 > 0 {
        try view.updateIndex()
        continue
      }
      if number % 30 == 27 { try view.deleteIndex() }
      var naive = NaiveView(view: TestView.all[place], version: 1)
      naive.reduce = .count
      let rows = naive.rows(try documents(database), try KeyComparison(TestView.all[place].collation))
      var query = view.query()
      query.mapOnly = true
      let found = try query.run()
      let lines = found.map { "\($0.keyJSON) \($0.sourceDocumentID ?? "-") \($0.sequence)" }
      try #require(
        lines == (try rows.map { "\(try $0.key.canonicalJSON()) \($0.id) \($0.sequence)" }),
        "\(number) \(view.name)")
      if view.name == "long" || view.name == "meta" {
        try expect(view.query().run().first?.value.int, equals: (rows.isEmpty ? nil : Int64(rows.count)))
      }
    }
    try database.save("stop", ["n": 1])
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    let updates = child.wholeLines.last.flatMap { Int($0) } ?? 0
    expect(updates > 3, "the other process made \(updates) updates")
    try compareWithFresh(views, "two processes")
    try expect(database.check(), equals: [])
    try database.close()
  }

  private func documents(_ database: Database) throws -> [NaiveDocument] {
    try (0..<150).compactMap { number in
      let leaves = try database.leaves(of: "doc\(number)", includeDeleted: true)
      return leaves.isEmpty ? nil : NaiveDocument(id: "doc\(number)", leaves: leaves)
    }
  }

  @Test(
    "threads update, query, redefine and drop the same views while documents change", arguments: someEngines)
  func threads(_ engine: EngineName) throws {
    let (database, views) = try open(engine, directory)
    let isDone = Lock(false)
    try onThreads(4) { thread in
      if thread == 0 {
        defer { isDone.withLock { $0 = true } }
        for number in 0..<(isLong ? 600 : 60) { try database.changeTestDocuments(number) }
        return
      }
      var random = SeededGenerator(seed: testSeed &+ UInt64(thread))
      while !isDone.withLock({ $0 }) {
        let place = random.below(views.count)
        let view = views[place]
        switch random.below(12) {
        case 0: try view.deleteIndex()
        case 1:
          view.setReduce(
            random.pick([
              .count, TestReduce.rereducing.reduce ?? .count, TestReduce.function.reduce ?? .count,
            ]))
        case 2:
          try TestView.all[place].set(in: database, version: 2)
          try TestView.all[place].set(in: database, version: 1)
        case 3:
          try database.inBatch {
            try database.save("batch\(thread)", ["n": 1, "k": "batch"])
            try view.updateIndex()
            try database.purge("batch\(thread)")
          }
        case 4..<7: try view.updateIndex()
        default:
          var query = view.query()
          query.mapOnly = random.once(in: 2)
          query.updateMode = random.pick([.before, .never, .after])
          query.groupLevel = random.below(2)
          let results = try query.run()
          expect(results.count <= results.totalRows)
        }
      }
    }
    // An update in the background goes on with the functions that were set when it began.
    expect(views[0].indexes.workers.waitUntilQuiet(seconds: 600))
    for view in views { view.setReduce(.count) }
    try compareWithFresh(views, "threads, TOUCHSTONE_SEED=\(testSeed)")
    try expect(database.check(), equals: [])
    try database.close()
  }
}
