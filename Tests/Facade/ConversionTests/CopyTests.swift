import TestSupport

@Suite("Prebuilt databases") struct CopyTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }

  private static func zip(_ files: [(name: String, contents: [UInt8])], to path: String) throws {
    try storedZip(files).write(to: URL(fileURLWithPath: path))
  }

  private static func files(of path: String, prefix: String) throws -> [(name: String, contents: [UInt8])] {
    try TestSupport.files(below: path).sorted { $0.key < $1.key }.map { (prefix + $0.key, $0.value) }
  }

  @Test("a copy is another peer that remembers whose checkpoints it has", arguments: someEngines)
  func identity(_ engine: EngineName) throws {
    try makeFixture(engine, at: path)
    let key = try key(of: engine)
    let before = try Contents(of: path, key: key)
    var database = try Database.open(path, options: DatabaseOptions(key: key))
    let (publicUUID, privateUUID) = (database.publicUUID, database.privateUUID)
    try expect(database.previousPrivateUUID == nil)
    try database.close()

    // Where nothing can be written.
    try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: path)
    try Database.copy(path, to: "b", in: directory.path, key: key)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    try Self.zip(
      Self.files(of: path, prefix: "assets/a.touchstone/") + [("__MACOSX/x", [1]), ("README", [2])],
      to: directory.path + "/a.zip")
    try Database.copy(directory.path + "/a.zip", to: "c", in: directory.path, key: key)
    try Self.zip(Self.files(of: path, prefix: ""), to: directory.path + "/flat.zip")
    try Database.copy(directory.path + "/flat.zip", to: "d", in: directory.path, key: key)
    // As some programs for Windows write it.
    let backslashes = try Self.files(of: path, prefix: "assets/a.touchstone/").map {
      ($0.name.split(separator: "/").joined(separator: "\\"), $0.contents)
    }
    try Self.zip(backslashes, to: directory.path + "/windows.zip")
    try Database.copy(directory.path + "/windows.zip", to: "w", in: directory.path, key: key)
    try expect(
      directory.names(),
      equals: [
        "a.touchstone", "a.zip", "b.touchstone", "c.touchstone", "d.touchstone", "flat.zip", "w.touchstone",
        "windows.zip",
      ])

    var uuids: Set<String> = [publicUUID, privateUUID]
    for name in ["b", "c", "d", "w"] {
      let copy = directory.path + "/\(name).touchstone"
      try expect(Contents(of: copy, key: key), equals: before)
      database = try Database.open(copy, options: DatabaseOptions(key: key))
      expect(database.engineName, equals: engine)
      try expect(database.previousPrivateUUID, equals: privateUUID)
      expect(uuids.insert(database.publicUUID).inserted)
      expect(uuids.insert(database.privateUUID).inserted)
      try database.close()
    }
    try expect(
      databaseCode { try Database.copy(path, to: directory.path + "/b", key: key) }, equals: .alreadyExists)
    try expect(
      databaseCode { try Database.copy(directory.path + "/no", to: directory.path + "/e") }, equals: .notFound
    )
  }

  @Test("a copy with a key of its own has a data key of its own")
  func keys() throws {
    try makeFixture(.sqlcipher, at: path)
    let (old, new) = (try oldKey(), try newKey())
    try Database.copy(path, to: directory.path + "/b", key: old, newKey: new)
    try Database.copy(path, to: directory.path + "/c", key: old, engine: .lmdb)
    try Database.copy(directory.path + "/c", to: directory.path + "/d", newKey: new, engine: .sqlcipher)
    let before = try Contents(of: path, key: old)
    try expect(Contents(of: directory.path + "/b", key: new), equals: before)
    try expect(Contents(of: directory.path + "/c", key: nil), equals: before)
    try expect(Contents(of: directory.path + "/d", key: new), equals: before)
    let original = try Database.open(path, options: DatabaseOptions(key: old))
    let copy = try Database.open(directory.path + "/b", options: DatabaseOptions(key: new))
    try expect(original.dataKey(old) != copy.dataKey(new))
    try original.close()
    try copy.close()
  }

  @Test("a zip file can't write anywhere else, nor be half a database")
  func badArchives() throws {
    try makeFixture(.sqlite, at: path)
    let files = try Self.files(of: path, prefix: "a/")
    let target = directory.path + "/inner/b"
    try FileManager.default.createDirectory(
      atPath: directory.path + "/inner", withIntermediateDirectories: true)
    var archives = 0
    func code(_ files: [(name: String, contents: [UInt8])], _ change: (inout Data) -> Void = { _ in }) throws
      -> DatabaseError.Code?
    {
      archives += 1
      let archive = directory.path + "/\(archives).zip"
      try Self.zip(files, to: archive)
      var bytes = try Data(contentsOf: URL(fileURLWithPath: archive))
      change(&bytes)
      try bytes.write(to: URL(fileURLWithPath: archive))
      defer { expect((try? directory.names("inner")), equals: []) }
      return try databaseCode { try Database.copy(archive, to: target) }
    }
    for name in [
      "../evil", "a/../../evil", "a/Attachments/../../../evil", "/tmp/evil", "..\\evil", "a/./x",
      "a\\..\\..\\evil",
      "a/Attachments/../\u{301}evil",
    ] {
      try expect(code(files + [(name, [1])]), equals: .damaged, "\(name)")
    }
    expect(!FileManager.default.fileExists(atPath: directory.path + "/evil"))
    try expect(code([("x", [1])]), equals: .notADatabase)
    try expect(code(files + Self.files(of: path, prefix: "b/")), equals: .notADatabase)
    try expect(code(files) { $0 = $0.prefix($0.count / 2) }, equals: .notADatabase)
    try expect(code(files) { $0[300] ^= 0xFF }, equals: .damaged)
    try expect(databaseCode { try Database.copy(path + "/database.json", to: target) }, equals: .notADatabase)
  }
}
