import Storage
import StorageFlat

/// The engine over WiredTiger (docs/storage-wiredtiger.md). An app registers it before it opens a database:
/// `Engines.register(WiredTigerEngines.wiredtiger)`.
public enum WiredTigerEngines {
  /// WiredTiger, the engine of MongoDB: a B+ tree with a cache and a log. One process at a time.
  public static let wiredtiger = FlatEngine.Kind(
    name: "wiredtiger", fileExtension: "wiredtiger", maximumReaders: WiredSettings.maximumReaders,
    sharesReading: false, compressions: WiredSettings.compressions
  ) { try WiredLibrary($0, $1) }.type
}
