// The process that the conformance suite starts and kills. An engine is added by its type here.

import StorageConformance
import StorageLMDB
import StorageSQLite

ConformanceChild.main(
  CommandLine.arguments, engines: SQLiteEngines.all + [LMDBEngines.lmdb, LMDBEngines.encrypted])
