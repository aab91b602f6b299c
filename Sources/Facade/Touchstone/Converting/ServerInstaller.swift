import Blobs
import Documents
import Encryption
import Logs
import Storage

/// Makes a database on a server from another one. It is there complete or not at all: its description comes last. The next
/// installation at its location goes on with what an interrupted one has left, and the next creation there removes that.
struct ServerInstaller {
  let target: ServerPlace

  /// Installs from another database. If `isAnotherPeer`, the copy gets new UUIDs. Throws `alreadyExists` if there is a database, and
  /// `notEncrypted` for a new key. Returns what the source lacks.
  func install(
    from place: DatabasePlace, engine: EngineType?, key: UserKey?, newKey: UserKey?, isAnotherPeer: Bool,
    progress: ConversionProgress.Handler?
  ) throws -> ConversionReport {
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
    return try withExtendedLifetime(source) {
      var recipe = try DatabaseRecipe(
        target.type, isEncrypted: source.isEncrypted, key: key, newKey: newKey, renewsDataKey: true,
        path: target.path)
      if isAnotherPeer { recipe.finish = { try DocumentStore.assignNewUUIDs(in: $0) } }
      guard try home.takeAlone(seconds: 10, unless: { false }) else {
        throw DatabaseError(.inUse, "another process is making the database", path: target.path)
      }
      try checkMissing()
      var (hasBegun, isKept) = (false, false)
      func keep() -> Bool {
        isKept = hasBegun
        return isKept
      }
      let report: ConversionReport
      do {
        report = try InterruptedConversion.resuming(target: target.path, keep: keep) { again in
          hasBegun = try home.state() == .unfinished
          let engine = try again ? nil : leftEngine(home)
          if engine == nil { try home.begin() }
          hasBegun = true
          let report = try write(source.data, home, recipe, engine, progress)
          guard try home.isStillAlone() else {
            throw StorageError(
              .conflict, "the connection that locked the new database was lost, and others may have used it",
              path: target.path)
          }
          try home.publish(try ServerDescription(engine: target.type.name).text)
          return report
        }
      } catch {
        // What can't be removed now, the next creation removes.
        if !isKept { try? home.remove() }
        throw error
      }
      Log.write(
        .info, .database, target.path,
        "made from \(source.path), with the engine \(target.type.name)\(report.logText)")
      return report
    }
  }

  /// The database isn't published yet, so what is stored last makes everything durable.
  private static let options = DatabaseOptions(durability: .none)

  /// The engine over what an interrupted installation has left; nil if there is nothing.
  private func leftEngine(_ home: any ServerHome) throws -> (any StorageEngine)? {
    guard try home.state() == .unfinished else { return nil }
    do { return try target.openEngine(.openExisting, Self.options) } catch let error as StorageError
      where error.code == .notFound
    {
      return nil
    }
  }

  /// Copies the entries of one snapshot, then the blobs, and reads them back.
  ///
  /// - Parameter left: the engine over a part that is there already. It is closed.
  private func write(
    _ source: DatabaseSource, _ home: any ServerHome, _ recipe: DatabaseRecipe,
    _ left: (any StorageEngine)?, _ progress: ConversionProgress.Handler?
  ) throws -> ConversionReport {
    var engine = try left ?? target.openEngine(.createNew, Self.options, isBulkLoad: true)
    do {
      let (snapshot, hold) = try source.beginRead()
      defer { hold?.end() }
      let record = try copyEntries(of: snapshot, to: engine, resumes: left != nil, progress)
      try engine.close()
      let blobs = try writeBlobs(from: source.blobs, home, progress)
      engine = try target.openEngine(.openExisting, Self.options)
      try record.verify(engine) {
        try progress?(ConversionProgress(phase: .verifying, done: $0.entries, total: $0.totalEntries))
      }
      let report = try ConversionReport(engine, blobs)
      try recipe.finish(engine)
      try engine.close()
      return report
    } catch {
      try? engine.close()
      throw error
    }
  }

  /// Copies all entries of a snapshot, and ends it.
  private func copyEntries(
    of snapshot: any ReadTransaction, to engine: any StorageEngine, resumes: Bool,
    _ progress: ConversionProgress.Handler?
  ) throws -> KeyspaceRecord {
    defer { snapshot.end() }
    return try KeyspaceCopy(from: snapshot, to: engine, resumes: resumes) {
      try progress?(ConversionProgress(phase: .copying, done: $0.entries, total: $0.totalEntries))
    }.run()
  }

  private func writeBlobs(
    from source: BlobStore, _ home: any ServerHome, _ progress: ConversionProgress.Handler?
  ) throws -> BlobStore {
    let total = try source.files().reduce(0) { $0 + Int($1.bytes) }
    let blobs = try BlobStore(home.blobs, durability: .none)
    var done = 0
    try source.copyAll(to: blobs, removesOthers: true) { bytes in
      done += bytes
      try progress?(ConversionProgress(phase: .blobs, done: done, total: total))
    }
    done = 0
    try blobs.verifyAll { bytes in
      done += bytes
      try progress?(ConversionProgress(phase: .verifying, done: done, total: total))
    }
    return blobs
  }
}
