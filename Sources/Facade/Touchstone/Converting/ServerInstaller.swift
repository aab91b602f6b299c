import Blobs
import Documents
import Encryption
import Logs
import Storage

/// Makes a database on a server from another one. It is there complete or not at all: its description comes last, and what an
/// interrupted installation leaves is removed by the next creation at its location.
struct ServerInstaller {
  let target: ServerPlace

  /// Installs from another database. If `isAnotherPeer`, the copy gets new UUIDs. Throws `alreadyExists` if there is a database, and
  /// `notEncrypted` for a new key.
  func install(
    from place: DatabasePlace, engine: EngineType?, key: UserKey?, newKey: UserKey?, isAnotherPeer: Bool,
    progress: ConversionProgress.Handler?
  ) throws {
    if let engine { try target.check(EngineName(rawValue: engine.name)) }
    try OpenDatabase.reserve(target.path)
    defer { OpenDatabase.unreserve(target.path) }
    let home = try target.home(DatabaseOptions(durability: .none))
    defer { home.close() }
    func checkMissing() throws {
      guard try target.description(home) == nil else {
        throw DatabaseError(
          .alreadyExists, "the new database can't be made: the server has one of this name", path: target.path
        )
      }
    }
    try checkMissing()
    let source = try ConversionSource(place, key: key)
    try withExtendedLifetime(source) {
      var recipe = try DatabaseRecipe(
        target.type, isEncrypted: source.isEncrypted, key: key, newKey: newKey, renewsDataKey: true,
        path: target.path)
      if isAnotherPeer { recipe.finish = { try DocumentStore.assignNewUUIDs(in: $0) } }
      guard try home.takeAlone(seconds: 10, unless: { false }) else {
        throw DatabaseError(.inUse, "another process is making the database", path: target.path)
      }
      try checkMissing()
      try home.begin()
      do {
        try writeData(from: source.data, recipe, progress)
        try writeBlobs(from: source.data.blobs, home, progress)
        try home.publish(try ServerDescription(engine: target.type.name).text)
      } catch {
        // What can't be removed now, the next creation removes.
        try? home.remove()
        throw error
      }
      Log.write(
        .info, .database, target.path, "made from \(source.path), with the engine \(target.type.name)")
    }
  }

  /// Copies the entries of one snapshot, and reads them back.
  private func writeData(
    from source: DatabaseSource, _ recipe: DatabaseRecipe, _ progress: ConversionProgress.Handler?
  ) throws {
    let snapshot = try source.engine.beginRead()
    defer { snapshot.end() }
    // The database isn't published yet, so what is stored last makes everything durable.
    let options = DatabaseOptions(durability: .none)
    var engine = try target.openEngine(.createNew, options, isBulkLoad: true)
    do {
      let record = try KeyspaceCopy(from: snapshot, to: engine) {
        try progress?(ConversionProgress(phase: .copying, done: $0.entries, total: $0.totalEntries))
      }.run()
      try engine.close()
      engine = try target.openEngine(.openExisting, options)
      try record.verify(engine) {
        try progress?(ConversionProgress(phase: .verifying, done: $0.entries, total: $0.totalEntries))
      }
      try recipe.finish(engine)
      try engine.close()
    } catch {
      try? engine.close()
      throw error
    }
  }

  private func writeBlobs(
    from source: BlobStore, _ home: any ServerHome, _ progress: ConversionProgress.Handler?
  ) throws {
    let total = try source.files().reduce(0) { $0 + Int($1.bytes) }
    let blobs = try BlobStore(home.blobs, durability: .none)
    var done = 0
    try source.copyAll(to: blobs) { bytes in
      done += bytes
      try progress?(ConversionProgress(phase: .blobs, done: done, total: total))
    }
    // Copies blobs that were added after the listing and before the snapshot.
    try source.copyAll(to: blobs)
    done = 0
    try blobs.verifyAll { bytes in
      done += bytes
      try progress?(ConversionProgress(phase: .verifying, done: done, total: total))
    }
  }
}
