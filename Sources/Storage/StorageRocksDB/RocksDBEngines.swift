import Storage
import StorageFlat

/// The engine over RocksDB (docs/storage-rocksdb.md). An app registers it before it opens a database:
/// `Engines.register(RocksDBEngines.rocksdb)`.
public enum RocksDBEngines {
  /// RocksDB, a log-structured merge tree: the engine for many writes. One process at a time.
  public static let rocksdb = FlatEngine.Kind(
    name: "rocksdb", fileExtension: "rocksdb", maximumReaders: 65_536, sharesReading: true,
    compressions: RocksSettings.Compression.allCases.map(\.rawValue)
  ) { try RocksLibrary($0, $1) }.type
}
