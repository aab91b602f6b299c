// The process that the conformance suite starts and kills. An engine is added by its type here.

import ChildSupport
import StorageConformance
import StorageEncrypted
import StorageLMDB
import StorageSQLite

#if ROCKSDB
  import StorageRocksDB
#endif
#if WIREDTIGER
  import StorageWiredTiger
#endif
#if POSTGRES
  import StoragePostgres
#endif

enum ConformanceCommands: ChildCommands {
  static let name = "storage"
  static let usage = "COMMAND ENGINE KEY|- …"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 3 else { throw WrongUsage() }
    var engines = SQLiteEngines.all + [LMDBEngines.lmdb, LMDBEngines.encrypted]
    #if ROCKSDB
      engines.append(RocksDBEngines.rocksdb)
    #endif
    #if WIREDTIGER
      engines.append(WiredTigerEngines.wiredtiger)
    #endif
    #if POSTGRES
      engines.append(PostgresEngines.postgres)
    #endif
    ConformanceChild.main(
      CommandLine.arguments, childArguments: [name],
      engines: engines + engines.map { StrictEngine.type(over: $0, name: "strict(\($0.name))") },
      tools: fileTools)
  }
}
