import Datasets
import TestSupport

/// What takes the place of the files of a database keeps their owner, group and permissions (docs/permissions.md).
@Suite("Permissions of files that are made anew") struct PermissionTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }

  /// What replaces files.
  enum Change: String, CaseIterable {
    case compact, convert, convertToOptional, encrypt, decrypt, rotate, rekey, replace, blob, reopen
  }

  /// An owner whom this process can give files to: another one if it is root.
  private static let owner: UInt32 = getuid() == 0 ? 54_321 : getuid()
  private static let group: UInt32 = getuid() == 0 ? 12_345 : getgid()

  /// Gives the whole database to the owner. Root does what follows.
  private func give(_ mode: UInt32) throws {
    for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: path)) {
      let file = path + "/" + name
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory)
      expect(chown(file, Self.owner, Self.group), equals: 0)
      let isBlob = name.hasPrefix("Attachments/")
      expect(
        chmod(file, mode_t(isDirectory.boolValue ? mode | mode >> 2 & 0o111 : isBlob ? mode & 0o444 : mode)),
        equals: 0)
    }
  }

  /// Checks the owner, the group and the mode of every file.
  private func check(_ mode: UInt32, _ change: Change) throws {
    for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: path)) {
      let access = try #require(FileAccess(of: path + "/" + name))
      expect(access.owner == Self.owner && access.group == Self.group, "\(change): the owner of '\(name)'")
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory)
      guard !isDirectory.boolValue else { continue }
      let isBlob = name.hasPrefix("Attachments")
      let expected = isBlob ? mode & 0o444 : mode
      expect(
        access.mode, equals: expected, "\(change): the mode of '\(name)' is \(String(access.mode, radix: 8))")
    }
  }

  private func perform(_ change: Change, _ engine: EngineName) throws {
    let key = try key(of: engine)
    func open(_ body: (Database) throws -> Void) throws {
      let database = try Database.open(
        path, options: DatabaseOptions(creation: .openExisting, durability: .none, key: key))
      try body(database)
      try database.close()
    }
    switch change {
    case .compact: try open { try $0.compact() }
    case .convert:
      let other: EngineName =
        engine == .lmdb || optionalEngines.contains(engine)
        ? .sqlite : engine == .sqlite ? .lmdb : engine == .sqlcipher ? .lmdbEncrypted : .sqlcipher
      try Database.convert(path, to: other, key: key)
    case .convertToOptional:
      for other in optionalEngines where key == nil { try Database.convert(path, to: other) }
    case .encrypt: try Database.encrypt(path, key: newKey())
    case .decrypt: try Database.decrypt(path, key: #require(key))
    case .rotate: try Database.rotateKey(path, key: #require(key), newKey: newKey())
    case .rekey: try Database.rekey(path, key: #require(key), newKey: newKey())
    case .replace:
      try makeFixture(.sqlite, at: directory.file("source"), documents: 10)
      try DatabaseFolder(directory.path).replace("a", with: directory.file("source.touchstone"))
    case .blob: try open { try $0.save("new", ["file": try $0.makeBlob([1, 2, 3]).jsonValue]) }
    case .reopen:
      // As after a copy: LMDB makes its lock file anew.
      for name in try directory.names("a.touchstone") where name.hasSuffix("-lock") {
        unlink(path + "/" + name)
      }
      try open { _ = try $0.documentCount }
    }
  }

  @Test(
    "a private database stays private and a shared one shared",
    arguments: someEngines + optionalEngines.filter { !someEngines.contains($0) }, Change.allCases)
  func modes(_ engine: EngineName, _ change: Change) throws {
    let encrypts = try encrypts(engine)
    if change == .encrypt && encrypts || [.decrypt, .rotate, .rekey].contains(change) && !encrypts { return }
    if engine == .sqlcipherPlain { return }
    // Encrypting goes to the engine of the same library.
    if optionalEngines.contains(engine) && change == .encrypt { return }
    for mode: UInt32 in [0o600, 0o660] {
      try? FileManager.default.removeItem(atPath: path)
      try? FileManager.default.removeItem(atPath: directory.file("source.touchstone"))
      try makeFixture(engine, at: path, documents: 10)
      try give(mode)
      try perform(change, engine)
      try check(mode, change)
    }
  }

  @Test("a copy of a private database is private")
  func copy() throws {
    try makeFixture(.sqlite, at: path, documents: 10)
    try give(0o600)
    try Database.copy(path, to: directory.file("b"))
    try Database.convert(path, to: .lmdb, at: directory.file("c"))
    for copy in ["b.touchstone", "c.touchstone"] {
      expect(FileAccess(of: directory.file(copy))?.mode, equals: 0o700)
      for name in try FileManager.default.subpathsOfDirectory(atPath: directory.file(copy)) {
        expect(
          (FileAccess(of: directory.file(copy) + "/" + name)?.mode ?? 0o777) & 0o077, equals: 0, "\(name)")
      }
    }
  }

  @Test("an upgrade in place takes the permissions of the old database")
  func upgrade() throws {
    var settings = LegacyDatabase()
    settings.documents = 5
    settings.attachments = 50
    let old = try LegacyDatabaseMaker(settings).make("a", in: directory.path)
    for name in [""] + (try FileManager.default.subpathsOfDirectory(atPath: old)) {
      var isDirectory: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: old + "/" + name, isDirectory: &isDirectory)
      expect(chown(old + "/" + name, Self.owner, Self.group), equals: 0)
      expect(chmod(old + "/" + name, isDirectory.boolValue ? 0o700 : 0o600), equals: 0)
    }
    try Database.upgradeInPlace(old)
    expect(FileAccess(of: path)?.mode, equals: 0o700)
    try check(0o600, .convert)
  }
}
