import TestSupport

@Suite("Locations on servers in a program without their engine") struct LocationWithoutEngineTests {
  @Test("say what is needed, and no password")
  func engineIsMissing() throws {
    // Other tests of the process may have registered the engine.
    guard !Engines.names.contains(.postgres) else { return }
    let location = "postgres://me:secret@host/db#travel"
    let errors = [
      try thrown(DatabaseError.self) { try Database.open(location) },
      try thrown(DatabaseError.self) { try Database.delete(location) },
      try thrown(DatabaseError.self) { try Database.copy("/nowhere", to: location) },
      try thrown(DatabaseError.self) { try DatabaseFolder("postgres://me:secret@host/db") },
    ]
    for error in errors {
      expect(error?.code, equals: .unknownEngine)
      let text = error.map { "\($0)" } ?? ""
      expect(text.contains("TouchstonePostgres") && text.contains("libpq-dev"), "\(text)")
      expect(text.contains("postgres://me@host/db"), "\(text)")
      expect(!text.contains("secret"), "\(text)")
    }
    expect(!Database.exists(location))
  }

  @Test("a folder's location has no name")
  func folder() throws {
    try expect(
      databaseCode { try DatabaseFolder("postgres://host/db#travel") }, equals: .invalidLocation)
    try expect(databaseCode { try DatabaseFolder("mysql://host/db") }, equals: .invalidLocation)
  }
}
