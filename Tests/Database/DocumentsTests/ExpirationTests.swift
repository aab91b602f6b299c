import TestSupport

@testable import Documents
@testable import Touchstone

@Suite("Expiration") struct ExpirationTests {
  private let databases = TestDatabases()

  @Test("set, read, listed by time, changed and cleared", arguments: someEngines)
  func dates(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for id in ["a", "b", "c", "d"] { try database.save(id, ["n": 1]) }
    try expect(database.expiration(of: "a") == nil)
    let year = 365.25 * 86_400
    // Beyond what a timer of 32 bits, or one of milliseconds in 32 bits (50 days), can be set to.
    let late = Date(timeIntervalSince1970: 4_000_000_000.125)
    try database.setExpiration(of: "a", at: late)
    try database.setExpiration(of: "b", after: 100 * 86_400)
    try database.setExpiration(of: "c", after: 1_000 * year)
    try database.setExpiration(of: "d", at: .distantFuture)
    try expect(database.expiration(of: "a"), equals: late)
    try expect(database.expirations().map(\.documentID), equals: ["b", "a", "c", "d"])
    try expect(database.expirations(limit: 1).map(\.documentID), equals: ["b"])
    let date = try database.expiration(of: "b")?.timeIntervalSinceNow ?? 0
    expect(date > 100 * 86_400 - 60 && date < 100 * 86_400 + 1)
    try database.setExpiration(of: "a", after: 3_600)
    try expect(database.expirations().map(\.documentID), equals: ["a", "b", "c", "d"])
    try database.setExpiration(of: "b", at: nil)
    try database.setExpiration(of: "b", at: nil)
    try expect(database.expirations().map(\.documentID), equals: ["a", "c", "d"])
    try expect(database.expirationCount, equals: 3)
    try expect(documentCode { try database.setExpiration(of: "none", after: 1) }, equals: .notFound)
    try expect(database.expiration(of: "none") == nil)
    // A save and a delete keep it, a purge ends it; it is no change.
    try expect(database.lastSequence, equals: 4)
    let kept = try database.expiration(of: "a")
    try database.save("a", ["n": 2])
    try expect(database.expiration(of: "a"), equals: kept)
    try database.delete("a")
    try expect(database.expiration(of: "a"), equals: kept)
    let inSnapshot = try database.read { try $0.expiration(of: "a") }
    expect(inSnapshot, equals: kept.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) })
    try database.purge("a")
    try expect(database.expirations().map(\.documentID), equals: ["c", "d"])
    try database.save("a", ["n": 1])
    try expect(database.expiration(of: "a") == nil)
    try expect(storageFaults(database), equals: [])
    try expect(database.purgeExpired(), equals: 0)
  }

  @Test("the timer purges what is over, past dates at once, and tells observers", arguments: someEngines)
  func timer(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let expired = Lock<Set<String>>([])
    let token = try database.observe { change in
      expired.withLock { expired in
        for change in change.changes where change.kind == .expired { expired.insert(change.documentID) }
      }
    }
    try database.inBatch {
      for n in 0..<20 { try database.save("doc\(n)", ["n": .int(Int64(n))]) }
      for n in 0..<10 { try database.setExpiration(of: "doc\(n)", after: Double(n) * 0.02) }
      try database.delete("doc3")
      try database.setExpiration(of: "doc10", after: 3_600)
    }
    try eventually { try database.documentCount == 10 }
    try database.setExpiration(of: "doc11", at: Date(timeIntervalSince1970: -1e9))
    try eventually { try database.documentCount == 9 }
    // One that is later than what the timer waits for, and one that is earlier.
    try database.setExpiration(of: "doc12", after: 7_200)
    try database.setExpiration(of: "doc13", after: 0.05)
    try eventually { try database.documentCount == 8 }
    try expect(database.tombstoneCount, equals: 0)
    eventually { expired.withLock { $0.count } == 12 }
    let rest = try database.changes().map { Int($0.documentID.dropFirst(3)) ?? 0 }
    expect(rest.min(), equals: 10)
    try expect(storageFaults(database), equals: [])
    token.cancel()
  }

  @Test(
    "what expired while the database was closed goes when it is opened, the rest stays",
    arguments: someEngines
  )
  func restart(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let options = try options(engine)
    let soon = Date(timeIntervalSinceNow: 0.3)
    do {
      let database = try Database.open("test", in: directory.path, options: options)
      for n in 0..<3_000 { try database.save("doc\(n)", ["n": 1]) }
      try database.inBatch {
        for n in 0..<2_500 { try database.setExpiration(of: "doc\(n)", at: soon) }
        try database.setExpiration(of: "doc2999", after: 86_400 * 60)
      }
      try database.close()
    }
    while Date() < soon { usleep(10_000) }
    let database = try Database.open("test", in: directory.path, options: options)
    try eventually { try database.documentCount == 500 }
    try expect(database.expirations().map(\.documentID), equals: ["doc2999"])
    try expect(storageFaults(database), equals: [])
    // Nothing holds up the close.
    try database.close()
    let readOnly = try Database.open(
      "test", in: directory.path, options: DatabaseOptions(isReadOnly: true, key: options.key))
    try expect(readOnly.expirationCount, equals: 1)
    try readOnly.close()
  }

  @Test("an entry that was changed to name another document purges nothing", arguments: someEngines)
  func otherDocument(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for id in ["doc1", "doc2", "doc3"] { try database.save(id, ["n": 1]) }
    let time = Int64(4_000_000_000_000)
    try database.store.setExpiration(of: "doc1", milliseconds: time)
    try database.store.setExpiration(of: "doc3", milliseconds: time + 5)
    // Of one the ID, of the other the time: both would be purged before they may be.
    for (number, milliseconds) in [("1", time), ("3", time + 5)] {
      try database.engine.writeEntries { transaction in
        let expiry = try #require(try transaction.keyspace(named: "expiry"))
        let key = ExpirationTime.bytes(milliseconds) + Array("doc\(number)".utf8)
        try expect(transaction.delete(key.span.bytes, in: expiry))
        let changed =
          number == "1" ? key.dropLast() + Array("2".utf8) : ExpirationTime.bytes(time) + key.dropFirst(8)
        try transaction.put(Array(changed).span.bytes, [UInt8]().span.bytes, in: expiry)
      }
      try expect(documentCode { try database.store.purgeExpired(at: time) }, equals: .damaged)
      try expect(database.documentCount, equals: 3)
      try expect(database.check() != [])
    }
  }

  @Test("random times: a model and the purges agree", arguments: someEngines)
  func model(_ engine: EngineName) throws {
    try withSeed { random in
      try withDatabase(engine) { database in
        var model: [String: Int64?] = [:]
        let base = Int64(4_000_000_000_000)
        for step in 0..<600 {
          let id = "doc\(UInt8.random(in: 0..<40, using: &random))"
          switch UInt8.random(in: 0..<10, using: &random) {
          case 0: if model.removeValue(forKey: id) != nil { try database.purge(id) }
          case 1, 2, 3:
            // Times that differ in every byte, before and after 1970.
            let time = [
              base + Int64.random(in: 0..<600, using: &random),
              Int64.random(in: base...Int64.max, using: &random),
            ].randomElement(using: &random)
            if model[id] != nil {
              try database.store.setExpiration(of: id, milliseconds: time)
              model[id] = .some(time)
            }
          case 4:
            let now = base + Int64(step)
            let over = model.filter { ($0.value ?? .max) <= now }.count
            try expect(database.store.purgeExpired(at: now, chunk: 3), equals: over)
            model = model.filter { ($0.value ?? .max) > now }
          case 5: if model[id] != nil, try database.document(id) != nil { try database.delete(id) }
          default:
            try database.save(id, ["n": .int(Int64(step))])
            if model[id] == nil { model[id] = .some(nil) }
          }
        }
        let expected = model.compactMap { id, time in time.map { ("\(id)", $0) } }
          .sorted { ($0.1, $0.0) < ($1.1, $1.0) }
        let found = try database.store.expirations()
        expect(found.map(\.documentID), equals: expected.map(\.0))
        expect(found.map(\.milliseconds), equals: expected.map(\.1))
        try expect(database.documentCount + database.tombstoneCount, equals: model.count)
        try expect(storageFaults(database), equals: [])
      }
    }
  }
}
