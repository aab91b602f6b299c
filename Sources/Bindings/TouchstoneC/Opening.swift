// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Storage
import Touchstone

#if ROCKSDB
  import StorageRocksDB
#endif

/// Registers the engines that not every build has, once.
private let optionalEngines: Void = {
  #if ROCKSDB
    Engines.register(RocksDBEngines.rocksdb)
  #endif
}()

/// Makes what every function needs that opens something by its path.
func prepareEngines() { _ = optionalEngines }

extension DatabaseOptions {
  /// The options that `touchstone_open` takes, and whether the database is in memory.
  fileprivate static func reading(_ options: inout Options) throws -> (options: Self, inMemory: Bool) {
    var result = DatabaseOptions()
    result.engine = try options.string("engine").map { EngineName(rawValue: $0) }
    result.requireEngine = try options.bool("requireEngine") ?? false
    result.creation =
      try options.choice(
        "create", [("ifMissing", .openOrCreate), ("never", .openExisting), ("always", .createNew)])
      ?? .openOrCreate
    result.makesParents = try options.bool("makeParents") ?? false
    result.isReadOnly = try options.bool("readOnly") ?? false
    result.durability =
      try options.choice("durability", Durability.allCases.map { ($0.rawValue, $0) }) ?? .normal
    result.key = try options.key()
    if let bytes = try options.int("cacheBytes") { result.cacheBytes = bytes }
    result.maximumTreeDepth = try options.int("treeDepth")
    result.verifiesChecksums = try options.bool("verifyChecksums") ?? false
    result.checksFile = try options.bool("checkFile") ?? false
    result.watchesOtherProcesses = try options.bool("watchOthers") ?? false
    result.scriptsPath = try options.string("scripts")
    let inMemory = try options.bool("inMemory") ?? false
    try options.end()
    return (result, inMemory)
  }
}

@c @implementation
public func touchstone_version() -> UnsafePointer<CChar>? { version }

/// Lives as long as the process.
private nonisolated(unsafe) let version: UnsafePointer<CChar>? = {
  let text = Array(touchstoneVersion.utf8CString)
  let copy = UnsafeMutablePointer<CChar>.allocate(capacity: text.count)
  copy.initialize(from: text, count: text.count)
  return UnsafePointer(copy)
}()

@c @implementation
public func touchstone_engines(
  _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    prepareEngines()
    try hand(.array(Engines.names.map { .string($0.rawValue) }), to: json, length)
  }
}

@c @implementation
public func touchstone_check_handles(_ mode: Int32, _ error: ErrorPlace?) -> Int32 {
  statusWithoutHandle(error) {
    guard let mode = Handles.Mode(rawValue: mode) else {
      throw Misuse("there is no way \(mode) to check handles", .badRequest)
    }
    try Handles.setMode(mode)
  }
}

@c @implementation
public func touchstone_open(
  _ path: UnsafePointer<CChar>?, _ path_length: Int, _ options: UnsafePointer<CChar>?, _ options_length: Int,
  _ database: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    try check(database)
    prepareEngines()
    var options = try Options(options, options_length)
    let (read, inMemory) = try DatabaseOptions.reading(&options)
    let path = try string(path, path_length, "the path")
    let opened = inMemory ? try Database.inMemory(options: read) : try Database.open(path, options: read)
    hand(DatabaseHandle(opened), to: database)
  }
}

@c @implementation
public func touchstone_close(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    guard !handle.isInBatch else {
      throw Misuse("the database can't be closed in a batch of its thread", .busy)
    }
    try handle.database.close()
  }
}

@c @implementation
public func touchstone_database_free(_ database: OpaquePointer?) { Handles.free(database) }

@c @implementation
public func touchstone_delete_database(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    guard !handle.isInBatch else {
      throw Misuse("the database can't be deleted in a batch of its thread", .busy)
    }
    try handle.database.delete()
  }
}

@c @implementation
public func touchstone_describe(
  _ database: OpaquePointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let description: JSONObject = try Handles.content(database, DatabaseHandle.self).perform { database in
      [
        "path": .string(database.path), "name": .string(database.name),
        "engine": .string(database.engineName.rawValue), "library": .string(database.engineLibrary),
        "encrypted": .bool(database.isEncrypted), "readOnly": .bool(database.isReadOnly),
        "documents": JSONValue(try database.documentCount),
        "tombstones": JSONValue(try database.tombstoneCount),
        "lastSequence": JSONValue(try database.lastSequence), "publicUUID": .string(database.publicUUID),
      ]
    }
    try hand(.object(description), to: json, length)
  }
}

@c @implementation
public func touchstone_count(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int64 {
  number(error) {
    Int64(try Handles.content(database, DatabaseHandle.self).perform { try $0.documentCount })
  }
}
