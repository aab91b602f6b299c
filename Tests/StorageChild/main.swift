// The process that the conformance suite starts and kills. An engine is added by its type here.

import StorageConformance
import StorageLMDB
import StorageSQLite
import StorageSealed

let engines = SQLiteEngines.all + [LMDBEngines.lmdb, LMDBEngines.encrypted]
ConformanceChild.main(
  CommandLine.arguments,
  engines: engines + engines.map { StrictEngine.type(over: $0, name: "strict(\($0.name))") }, tools: fileTools
)
