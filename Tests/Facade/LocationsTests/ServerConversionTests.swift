import TestSupport

@Suite("Conversions between directories and servers", .enabled(if: hasServer)) struct ServerConversionTests {
  private func openReading(_ place: String, _ key: UserKey? = nil) throws -> Database {
    try Database.open(place, options: .init(creation: .openExisting, isReadOnly: true, key: key))
  }

  /// Compares two closed databases, with all revisions, sequences and blobs.
  private func expectEqual(_ left: String, _ right: String, _ key: UserKey? = nil) throws {
    let (left, right) = (try openReading(left, key), try openReading(right))
    try expect(differences(left, right, sequences: true).map(\.description), equals: [])
    try expect(right.check(deep: true).map(\.description), equals: [])
    try left.close()
    try right.close()
  }

  @Test("everything comes along both ways", arguments: [EngineName.sqlite, .lmdb, .lmdbEncrypted])
  func bothWays(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      let key = try key(of: engine)
      let (path, back) = (directory + "/a", directory + "/b")
      let database = try Database.open(path, options: try options(engine))
      try fill(database)
      let identity = (database.publicUUID, database.privateUUID)
      try database.close()
      let location = try newLocation()
      var phases: Set<ConversionProgress.Phase> = []
      try Database.convert(path, to: .postgres, at: location, key: key) { phases.insert($0.phase) }
      expect(phases, equals: [.copying, .blobs, .verifying])
      try expectEqual(path, location, key)
      let converted = try openReading(location)
      expect((converted.publicUUID, converted.privateUUID) == identity)
      try converted.close()
      try expect(
        databaseCode { try Database.convert(path, to: .postgres, at: location, key: key) },
        equals: .alreadyExists)
      try Database.convert(location, to: .sqlite, at: back)
      try expectEqual(location, back)
      try Database.delete(location)
    }
  }

  @Test("a copy is another peer, from a directory, to a directory and between servers")
  func copies() throws {
    try withTemporaryDirectory { directory in
      let (first, second) = (try newLocation(), try newLocation())
      let path = directory + "/a"
      let database = try Database.open(path, options: .init(engine: .lmdb))
      try fill(database)
      try database.close()
      try Database.copy(path, to: first)
      try Database.copy(first, to: second)
      try Database.copy(second, to: directory + "/b")
      for (left, right) in [(path, first), (first, second), (second, directory + "/b")] {
        let (left, right) = (try openReading(left), try openReading(right))
        try expect(differences(left, right).map(\.description), equals: [])
        expect(left.publicUUID != right.publicUUID)
        try expect(right.previousPrivateUUID, equals: left.privateUUID)
        try left.close()
        try right.close()
      }
      let last = try openReading(directory + "/b")
      expect(last.engineName, equals: .sqlite)
      try last.close()
      for location in [first, second] { try Database.delete(location) }
    }
  }

  @Test("a conversion that ends early leaves nothing")
  func endedEarly() throws {
    struct Ended: Error {}
    try withTemporaryDirectory { directory in
      let path = directory + "/a"
      let database = try Database.open(path)
      try fill(database)
      try database.close()
      for phase in [ConversionProgress.Phase.copying, .blobs, .verifying] {
        let location = try newLocation()
        #expect(throws: Ended.self) {
          try Database.convert(path, to: .postgres, at: location) { if $0.phase == phase { throw Ended() } }
        }
        expect(!Database.exists(location))
        try expect(tables(location.schema), equals: [])
      }
    }
  }

  @Test("keys and places that don't fit are refused")
  func refusals() throws {
    let location = try newLocation()
    let database = try Database.open(location)
    try database.close()
    let newKey = try UserKey.raw([UInt8](repeating: 3, count: 32))
    try expect(databaseCode { try Database.convert(location, to: .lmdb) }, equals: .invalidLocation)
    try withTemporaryDirectory { directory in
      let path = directory + "/a"
      try Database.open(path).close()
      try expect(databaseCode { try Database.convert(path, to: .postgres) }, equals: .invalidLocation)
      try expect(
        databaseCode { try Database.convert(path, to: .lmdb, at: newLocation()) }, equals: .invalidLocation)
      try expect(
        databaseCode { try Database.convert(path, to: .postgres, at: directory + "/b") },
        equals: .invalidLocation)
      try expect(
        databaseCode { try Database.convert(path, to: .postgres, at: newLocation(), newKey: newKey) },
        equals: .notEncrypted)
      // From a server into an encrypted directory.
      try Database.copy(location, to: directory + "/c", newKey: newKey)
      try expect(Database.isEncrypted(directory + "/c"))
    }
    try Database.delete(location)
  }
}
