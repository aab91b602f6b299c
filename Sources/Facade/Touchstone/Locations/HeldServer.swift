import Blobs
import Documents
import Encryption
import Logs
import Storage

/// The place of an open database on a server.
final class HeldServer: DatabaseHome {
  private let place: ServerPlace
  private let home: any ServerHome

  private init(_ place: ServerPlace, _ home: any ServerHome) {
    self.place = place
    self.home = home
  }

  var isThere: Bool { true }
  var dataPath: String { place.path }
  var dataBytes: Int { 0 }

  // MARK: Opening

  /// Opens the database, or makes it, and shares its lock. Nil if another process made or removed it in the meantime.
  static func open(_ place: ServerPlace, _ options: DatabaseOptions) throws -> OpenedDatabase? {
    try check(place, options)
    let home = try place.home(options)
    do {
      guard let store = try store(place, home, options) else {
        home.close()
        return nil
      }
      home.rest()
      return (HeldServer(place, home), store, nil)
    } catch {
      home.close()
      throw error
    }
  }

  /// Throws an error for options that no database on a server can have.
  private static func check(_ place: ServerPlace, _ options: DatabaseOptions) throws {
    guard options.key == nil else {
      throw DatabaseError(
        .notEncrypted,
        "a key was given, but the engine \(place.type.name) can't encrypt; give no key, and use TLS and the server's own encryption",
        path: place.path)
    }
    if options.creation != .openExisting, let engine = options.engine { try place.check(engine) }
  }

  private static func store(
    _ place: ServerPlace, _ home: any ServerHome, _ options: DatabaseOptions
  ) throws -> DocumentStore? {
    if try place.description(home) != nil {
      guard options.creation != .createNew else { throw exists(place) }
    } else {
      guard options.creation != .openExisting, !options.isReadOnly else { throw place.missing }
      func isComplete() throws -> Bool { try place.description(home) != nil }
      guard try home.takeAlone(seconds: 10, unless: isComplete) else {
        if try isComplete() { return nil }
        throw DatabaseError(.inUse, "another process is making the database", path: place.path)
      }
      // Another process may have made it in the meantime.
      guard try !isComplete() else {
        home.giveUpAlone()
        return nil
      }
      return try create(place, home, options)
    }
    guard try home.share(seconds: 10) else {
      throw DatabaseError(.inUse, "another process is making or removing the database", path: place.path)
    }
    guard let description = try place.description(home) else { return nil }
    try place.check(EngineName(rawValue: description.engine))
    let engine = try place.openEngine(.openExisting, options)
    return try withEngine(engine) {
      if options.checksFile { try OpenDatabase.checkFile(engine, place.path) }
      return try documents(engine, place, home, options)
    }
  }

  private static func exists(_ place: ServerPlace) -> DatabaseError {
    DatabaseError(.alreadyExists, "the database exists already", path: place.path)
  }

  /// Makes the database, and then shares its lock.
  private static func create(
    _ place: ServerPlace, _ home: any ServerHome, _ options: DatabaseOptions
  ) throws -> DocumentStore {
    try home.begin()
    let engine = try place.openEngine(.createNew, options)
    return try withEngine(engine) {
      let store = try documents(engine, place, home, options)
      guard try home.share(seconds: 0) else {
        throw DatabaseError(.inUse, "the database can't be locked", path: place.path)
      }
      try home.publish(try ServerDescription(engine: place.type.name).text)
      home.giveUpAlone()
      Log.write(.info, .database, place.path, "made, with the engine \(place.type.name)")
      return store
    }
  }

  private static func documents(
    _ engine: any StorageEngine, _ place: ServerPlace, _ home: any ServerHome, _ options: DatabaseOptions
  ) throws -> DocumentStore {
    let blobs = try BlobStore(home.blobs, isReadOnly: options.isReadOnly, durability: options.durability)
    return try DocumentStore(
      engine: engine, options: OpenDatabase.storeOptions(options, place.path), blobs: blobs)
  }

  /// Closes the engine if `body` throws.
  private static func withEngine<Result>(_ engine: any StorageEngine, _ body: () throws -> Result) throws
    -> Result
  {
    do { return try body() } catch {
      try? engine.close()
      throw error
    }
  }

  func unlock(_ key: UserKey?) throws -> SecretBytes? {
    guard key == nil else {
      throw DatabaseError(
        .notEncrypted, "a key was given, but the database isn't encrypted", path: place.path)
    }
    return nil
  }

  func openEngine(_ dataKey: SecretBytes?, _ options: DatabaseOptions) throws -> any StorageEngine {
    try place.openEngine(.openExisting, options)
  }

  /// Does nothing: the blobs are told by their store.
  func prepareForWriting() throws {}

  func makeWatch(_ store: DocumentStore) -> ChangeWatch {
    ChangeWatch(store, path: place.path, server: home)
  }

  // MARK: The lock

  func takeAlone() throws {
    guard try home.takeAlone(seconds: 0, unless: { false }) else {
      throw DatabaseError(
        .inUse, "the database is open in another process; close it there first", path: place.path)
    }
  }

  func shareAgain() { home.giveUpAlone() }
  func release() { home.close() }

  // MARK: Upkeep

  func inTurn(_ body: () throws -> Void) throws -> Bool { try home.inTurn(body) }
  func workTurn(for purpose: String) -> any WorkTurn { home.workTurn(for: purpose) }

  func compactsAlone(_ engine: any StorageEngine) throws -> Bool { false }

  /// Does nothing: the server uses the space of removed entries again by itself.
  func compact(_ open: OpenDatabase) throws {}

  /// Does nothing: the server has logged the commits, before the removal of blobs.
  func sync(_ files: HeldFiles, _ durability: Durability) throws {}

  func changeKey(
    of dataKey: SecretBytes, to newKey: UserKey, from key: UserKey?, _ stretching: PassphraseStretching
  ) throws {
    throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: place.path)
  }

  func plaintextCheck(_ files: HeldFiles, onFile: @escaping (FileEntropy) -> Void) throws -> PlaintextCheck? {
    nil
  }

  // MARK: Removing

  func checkRemovable() throws {}

  func remove() throws {
    try home.remove()
    Log.write(.info, .database, place.path, "removed")
  }
}
