import TestSupport

@Suite("Locations of databases") struct LocationTests {
  @Test(
    "a text with a scheme is a location, and everything else a path",
    arguments: [
      ("postgres://host/db#travel", true), ("POSTGRESQL://host/db#travel", true), ("a+b-c.1://h#x", true),
      ("travel", false), ("/a/postgres://b", false), ("1a://b#c", false), ("./a://b", false),
      ("://a#b", false), ("a:/b", false), ("ä://b", false),
    ])
  func scheme(_ text: String, _ isLocation: Bool) throws {
    expect(DatabaseLocation.isOnServer(text), equals: isLocation)
    try expect(DatabaseLocation(text).isOnServer, equals: isLocation)
    expect(!DatabaseLocation(path: text).isOnServer)
  }

  @Test(
    "a location without a readable name is refused",
    arguments: [
      ("postgres://host/db", DatabaseError.Code.invalidLocation),
      ("postgres://me:a#b@host/db", .invalidLocation),
      ("postgres://host/db#", .invalidName), ("postgres://host/db#%zz", .invalidName),
      ("postgres://host/db#%ff", .invalidName),
      ("postgres://host/db#a%00", .invalidName), ("postgres://host/db#a%0a", .invalidName),
    ])
  func names(_ text: String, _ code: DatabaseError.Code) throws {
    let error = try thrown(DatabaseError.self) { try DatabaseLocation(text) }
    expect(error?.code, equals: code)
    expect(error?.path?.hasPrefix("postgres://") ?? false)
  }

  @Test(
    "the server's own rules hold for names", .enabled(if: hasServer),
    arguments: ["pg_x", "information_schema", String(repeating: "x", count: 64)])
  func serverNames(_ name: String) throws {
    let location = try newLocation(name)
    try expect(databaseCode { try Database.open(location) }, equals: .invalidLocation)
  }

  @Test("an unknown scheme names those that are known")
  func unknownScheme() throws {
    let error = try thrown(DatabaseError.self) { try Database.open("mysql://me:secret@host/db#travel") }
    expect(error?.code, equals: .invalidLocation)
    let text = error.map { "\($0)" } ?? ""
    expect(text.contains("mysql://") && text.contains("postgres://"))
    expect(!text.contains("secret"))
  }

  @Test(
    "a password is shown nowhere",
    arguments: [
      "postgres://me:secret@host/db#x", "postgres://me:se?cret@host/db#x",
      "postgres://host/db?password=secret#x",
      "postgres://me:a#secret@host/db", "mysql://me:secret@host/db#x", "postgres://me:secret@host/db",
    ])
  func passwords(_ text: String) throws {
    let shown: [String]
    if let location = try? DatabaseLocation(text) {
      var dumped = ""
      dump(location, to: &dumped)
      shown = ["\(location)", String(reflecting: location), dumped]
    } else {
      shown = ["\(try #require(try thrown(DatabaseError.self) { try DatabaseLocation(text) }))"]
    }
    for text in shown { expect(!text.contains("secret") && !text.contains("cret@")) }
  }

  @Test("operations on directories refuse a location")
  func directories() throws {
    let location = "postgres://me:secret@host/db#x"
    let key = try UserKey.passphrase("key")
    let codes = [
      try databaseCode { try Database.rekey(location, key: key, newKey: key) },
      try databaseCode { try Database.encrypt(location, key: key) },
    ]
    expect(codes, equals: [.invalidLocation, .invalidLocation])
  }

  @Test("an engine on a server has no database in a directory", .enabled(if: hasServer))
  func engineWithoutLocation() throws {
    _ = try server()
    try withTemporaryDirectory { directory in
      try expect(
        databaseCode { try Database.open("x", in: directory, options: .init(engine: .postgres)) },
        equals: .invalidLocation)
      try expect(FileManager.default.contentsOfDirectory(atPath: directory), equals: [])
    }
    let location = try newLocation()
    try expect(
      databaseCode { try Database.open(location, options: .init(engine: .lmdb)) }, equals: .invalidLocation)
  }

  @Test("errors of servers say what and where", .enabled(if: hasServer))
  func serverErrors() throws {
    let server = try server()
    try server.sql("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    let nobody = server.location("x", user: "nobody")
    let errors: [(StorageError.Code, String)] = [
      (.permissionDenied, nobody),
      (.notFound, "postgres:///absent?host=\(server.directory)&user=touchstone#x"),
      (.ioError, "postgres:///postgres?host=/nowhere&user=touchstone#x"),
    ]
    for (code, location) in errors {
      let error = try thrown(StorageError.self) { try Database.open(location) }
      expect(error?.code, equals: code, "\(location)")
      expect(error?.path, equals: location)
    }
    try expect(
      databaseCode { try Database.open(newLocation(), options: .init(creation: .openExisting)) },
      equals: .notFound)
    try expect(
      databaseCode { try Database.open(newLocation(), options: .init(isReadOnly: true)) }, equals: .notFound)
    try expect(databaseCode { try Database.delete(newLocation()) }, equals: .notFound)
    try expect(
      databaseCode { try Database.open(newLocation(), options: .init(key: .passphrase("key"))) },
      equals: .notEncrypted)
  }
}
