import Blobs
import Documents
import Encryption
import Storage

/// A database that is read to make another one. It shares the engine with other opens in this process.
final class ConversionSource {
  let path: String
  let opened: OpenDatabase
  let isEncrypted: Bool
  /// The name of the engine of the source.
  private let engineName: EngineName
  /// The engine of the source. Throws `unknownEngine` for a database in memory.
  var type: EngineType {
    get throws { try Engines.type(engineName) }
  }
  let data: DatabaseSource
  /// The file with the wrapped data key; nil if the source isn't encrypted.
  let keyPath: String?

  /// Opens the source. Throws `notFound`, and for an encrypted one `keyRequired` and `wrongKey`.
  init(_ place: DatabasePlace, key: UserKey?) throws {
    path = place.path
    isEncrypted = try place.isEncrypted()
    let opened = try Self.open(place, isEncrypted ? key : nil)
    self.opened = opened
    do {
      let oldKey = try opened.dataKey(isEncrypted ? key : nil)
      // Another process may have replaced the files before they were locked.
      if case .directory(let directory) = place, let home = opened.home as? HeldDirectory {
        let description = home.currentDescription
        engineName = EngineName(rawValue: description.engine)
        keyPath = directory.keyPath(description)
        let blobs = try BlobStore(
          directory: directory.blobsPath(description), dataKey: oldKey, isReadOnly: true)
        data = DatabaseSource(engine: opened.store.engine, blobs: blobs, dataKey: oldKey)
      } else {
        engineName = EngineName(rawValue: opened.store.engine.name)
        keyPath = nil
        data = DatabaseSource(
          engine: opened.store.engine, blobs: try opened.store.requiredBlobs, dataKey: oldKey)
      }
    } catch {
      try? opened.close()
      throw error
    }
  }

  deinit { try? opened.close() }

  /// Opens a database for reading. If its process was killed, and the engine replays its log only in an open for writing,
  /// there is one before.
  private static func open(_ place: DatabasePlace, _ key: UserKey?) throws -> OpenDatabase {
    var options = DatabaseOptions(creation: .openExisting, isReadOnly: true, key: key)
    do { return try OpenDatabase.open(place, options) } catch let error as StorageError
      where error.code == .readOnly
    {
      options.isReadOnly = false
      do { try OpenDatabase.open(place, options).close() } catch is StorageError { throw error }
      options.isReadOnly = true
      return try OpenDatabase.open(place, options)
    }
  }
}
