import Documents
import TestSupport

@testable import Views

/// What is stored of views: damage that a check finds, records of other versions, and views in databases that are converted,
/// copied and compared.
@Suite("Stored views") struct StoredViewTests {
  private let databases = TestDatabases()

  /// A database with two views that have partial reductions of several blocks.
  private func filled(_ engine: EngineName) throws -> (Database, View) {
    let database = try databases.open(engine)
    try fill(database)
    return (database, try set(database))
  }

  private func fill(_ database: Database) throws {
    try database.saveBatch(0..<300) { ("d\($0)", ["n": .int(Int64($0)), "t": .string("t\($0 % 3)")]) }
    try database.save("_design/js", ["views": ["t": ["map": "doc => emit(doc.t, doc.n)", "reduce": "_sum"]]])
  }

  @discardableResult
  private func set(_ database: Database, map version: String = "1") throws -> View {
    let view = try database.view("n")
    try view.setMap(version: version) { document, emit in emit(document["n"], document["t"]) }
    view.setReduce(.count)
    return view
  }

  // MARK: Damage

  private enum Part: String, CaseIterable {
    case rows, sources, reductions
  }

  /// Changes an entry of a keyspace in the middle.
  private func damage(
    _ view: View, _ part: Part, _ change: (any WriteTransaction, Keyspace, [UInt8], [UInt8]) throws -> Void
  ) throws {
    try view.indexes.store.writingDerived { transaction in
      let record = try #require(try ViewRecord.read(view.name, in: transaction))
      let tables = try ViewTables(record, of: view.name, in: transaction)
      let keyspace =
        switch part {
        case .rows: tables.rows.keyspace
        case .sources: tables.sources
        case .reductions: tables.reductions.keyspace
        }
      var entries: [(key: [UInt8], value: [UInt8])] = []
      try transaction.scan(keyspace, .all) { key, value in
        entries.append(([UInt8](copying: key), [UInt8](copying: value)))
        return true
      }
      let entry = entries[entries.count / 2]
      try change(transaction, keyspace, entry.key, entry.value)
    }
  }

  @Test("a check finds entries that are missing, changed, or too many", arguments: someEngines)
  func damage(_ engine: EngineName) throws {
    for part in Part.allCases {
      for kind in 0..<3 {
        let (database, view) = try filled(engine)
        try view.updateIndex()
        try expect(database.check(), equals: [])
        try damage(view, part) { transaction, keyspace, key, value in
          switch kind {
          case 0: try transaction.delete(key.span.bytes, in: keyspace)
          case 1:
            // Of a row, its value; of the others, a count.
            var changed = value
            changed[part == .rows ? changed.count - 2 : 0] ^= 1
            try transaction.put(key, changed, in: keyspace)
          default: try transaction.put(key + [0x41], value, in: keyspace)
          }
        }
        let faults = try database.check().map(\.description)
        expect(!faults.isEmpty, "\(part.rawValue) \(kind)")
        for fault in faults { expect(fault.contains("view 'n'"), "\(part.rawValue) \(kind): \(fault)") }
        // A view is derived: dropped and built again, it is right.
        try view.deleteIndex()
        try view.updateIndex()
        try expect(database.check(), equals: [])
      }
    }
  }

  @Test("a check compares rows with what the functions emit now", arguments: someEngines)
  func otherFunction(_ engine: EngineName) throws {
    let (database, view) = try filled(engine)
    try view.updateIndex()
    // A function that isn't the one that its version says.
    try view.setMap(version: "1") { document, emit in emit(document["t"]) }
    try expect(!database.check().isEmpty)
    try set(database)
    try expect(database.check(), equals: [])
    // Documents that have changed since can't be compared, and others are.
    try database.save("d7", ["n": 1_000])
    try database.purge("d8")
    try expect(database.check(), equals: [])
  }

  @Test("a keyspace of a view that isn't there is found")
  func strangeKeyspace() throws {
    let (database, view) = try filled(.lmdb)
    try view.updateIndex()
    try view.indexes.store.writingDerived { transaction in
      _ = try transaction.createKeyspace("view.77.sources", shape: .entries)
    }
    try expect(database.check().map(\.description).count { $0.contains("view.77.sources") }, equals: 1)
  }

  // MARK: Records

  private func change(_ view: View, _ body: (inout ViewRecord) -> Void) throws {
    try view.indexes.store.writingDerived { transaction in
      var record = try #require(try ViewRecord.read(view.name, in: transaction))
      body(&record)
      try record.write(view.name, in: transaction)
    }
  }

  @Test("another version of ICU's collator builds the view again", arguments: someEngines)
  func collator(_ engine: EngineName) throws {
    let (_, view) = try filled(engine)
    try expect(view.updateIndex().documents, equals: 300)
    try expect(view.updateIndex(), equals: ViewUpdate())
    try change(view) { $0.collator = Array("1.2.3.4 guide 1".utf8) }
    try expect(view.query().run().first?.value, equals: 300)
    expect(view.lastUpdate.documents, equals: 300)
    let record = try view.indexes.store.read { try ViewRecord.read(view.name, in: $0.storage) }
    try expect(record?.collator, equals: Array(ViewKeyEncoder(.unicode).collatorVersion.utf8))
    // A collation that doesn't use ICU has no version.
    try view.setMap(version: "1", collation: .raw) { document, emit in emit(document["n"]) }
    try view.updateIndex()
    let raw = try view.indexes.store.read { try ViewRecord.read(view.name, in: $0.storage) }
    expect(raw?.collator, equals: [])
  }

  @Test("a record of a later format, and one that can't be read, are typed errors")
  func records() throws {
    let (_, view) = try filled(.sqlite)
    try view.updateIndex()
    func write(_ value: [UInt8]) throws {
      try view.indexes.store.writingDerived { transaction in
        let keyspace = try #require(try transaction.keyspace(named: DocumentStore.viewsKeyspace))
        try transaction.put(ViewRecord.key(view.name), value, in: keyspace)
      }
    }
    func code() -> ViewError.Code? {
      do { _ = try view.query().run() } catch { return (error as? ViewError)?.code }
      return nil
    }
    let record = try #require(
      try view.indexes.store.read { try ViewRecord.read(view.name, in: $0.storage) })
    let good = record.encoded
    try write([ViewRecord.version + 1] + good.dropFirst())
    expect(code(), equals: .unsupportedVersion)
    for count in 0..<good.count {
      try write(Array(good.prefix(count)))
      expect(code(), equals: .damaged, "\(count) bytes of \(good.count)")
    }
    try write(good + [0])
    expect(code(), equals: .damaged)
    try write(good)
    expect(code() == nil)
  }

  // MARK: Databases as a whole

  @Test("a conversion brings views along, and they go on where they were", arguments: someEngines)
  func conversion(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      let options = try options(engine)
      let database = try Database.open("old", in: directory, options: options)
      try fill(database)
      let view = try set(database)
      let rows = try view.query().run()
      try database.save("later", ["n": 5_000])
      let sums = try database.view("js/t").query().run()
      try database.close()
      let target: EngineName = engine == .lmdb ? .sqlite : .lmdb
      try Database.convert("old", in: directory, to: target, at: "new", key: options.key)
      let converted = try Database.open("new", in: directory, options: TestSupport.options(target))
      let carried = try set(converted)
      try expect(converted.viewNames, equals: ["js/t", "n"])
      try expect(carried.totalRows, equals: 300)
      var query = carried.query()
      query.updateMode = .never
      try expect(query.run().map(\.valueJSON), equals: rows.map(\.valueJSON))
      try expect(carried.updateIndex().documents, equals: 1)
      try expect(converted.view("js/t").query().run().map(\.valueJSON), equals: sums.map(\.valueJSON))
      try expect(converted.check(), equals: [])
      // Rows are derived, so they are no difference; a design document is a document.
      let original = try Database.open("old", in: directory, options: options)
      var differences: [String] = []
      try original.compare(with: converted) { differences.append("\($0)") }
      expect(differences, equals: [])
      try carried.delete()
      try original.compare(with: converted) { differences.append("\($0)") }
      expect(differences, equals: [])
      try converted.save("_design/js", ["views": [:]])
      try original.compare(with: converted) { differences.append("\($0)") }
      expect(!differences.isEmpty && differences.allSatisfy { $0.contains("_design/js") }, "\(differences)")
      try original.close()
      try converted.close()
    }
  }
}
