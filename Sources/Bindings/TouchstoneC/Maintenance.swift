// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Touchstone

/// What C is told of the progress of an operation.
typealias ProgressCallback =
  @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, Int64) ->
  Int32

/// Calls a function of C with the progress. Throws its status if that isn't 0.
private func report(
  _ callback: ProgressCallback, _ context: UnsafeMutableRawPointer?, _ phase: String, _ done: Int,
  _ total: Int
) throws {
  let status = phase.withCString { callback(context, $0, Int64(done), Int64(total)) }
  if status != 0 { throw CallerStatus(status: status) }
}

/// What hands the progress of a conversion to a function of C.
private func handler(
  _ callback: ProgressCallback?, _ context: UnsafeMutableRawPointer?
) -> ConversionProgress.Handler? {
  guard let callback else { return nil }
  return { state in try report(callback, context, state.phase.rawValue, state.done, state.total) }
}

extension ConversionReport {
  /// What C is told of it.
  fileprivate var json: JSONValue {
    .object([
      "missingBlobs": JSONValue(missingBlobCount), "documents": JSONValue(documentCount),
      "places": .array(
        missingBlobs.map { blob in
          .object([
            "document": .string(blob.documentID), "digest": .string(blob.digest), "path": .string(blob.path),
          ])
        }),
    ])
  }
}

@c @implementation
public func touchstone_set_log(
  _ levels: UnsafePointer<CChar>?, _ length: Int, _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    let text = try string(levels, length, "the levels")
    do { Log.add(Log.standardError, levels: try LogLevels(text)) } catch {
      throw Misuse("\(error)", .badRequest)
    }
  }
}

@c @implementation
public func touchstone_compact(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(database, DatabaseHandle.self).perform { try $0.compact() } }
}

@c @implementation
public func touchstone_check(
  _ database: OpaquePointer?, _ deep: Int32, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let faults = try Handles.content(database, DatabaseHandle.self).perform { try $0.check(deep: deep != 0) }
    try hand(.array(faults.map { .string($0.description) }), to: json, length)
  }
}

@c @implementation
public func touchstone_verify(
  _ database: OpaquePointer?, _ other: OpaquePointer?, _ flags: UInt32, _ json: TextPlace?,
  _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let left = try Handles.content(database, DatabaseHandle.self).database
    let right = try Handles.content(other, DatabaseHandle.self).database
    guard flags < 4 else { throw Misuse("touchstone_verify has no flags \(flags)", .badRequest) }
    var differences: [JSONValue] = []
    let compared = try left.compare(with: right, sequences: flags & 1 != 0, onlyCurrent: flags & 2 != 0) {
      guard differences.count < 1_000 else { return }
      differences.append(
        .object(["id": .string($0.id), "kind": .string($0.kind.rawValue), "text": .string($0.description)]))
    }
    try hand(
      .object(["compared": JSONValue(compared), "differences": .array(differences)]), to: json, length)
  }
}

@c @implementation
public func touchstone_convert(
  _ path: UnsafePointer<CChar>?, _ path_length: Int, _ options: UnsafePointer<CChar>?, _ options_length: Int,
  _ progress: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, Int64) -> Int32)?,
  _ context: UnsafeMutableRawPointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?,
  _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    prepareEngines()
    let path = try string(path, path_length, "the path")
    var options = try Options(options, options_length)
    guard let engine = try options.string("engine") else {
      throw Misuse("a conversion needs the option engine", .badRequest)
    }
    let target = try options.string("target")
    let (key, newKey) = (try options.key(), try options.key("new"))
    try options.end()
    let report = try Database.convert(
      path, to: EngineName(rawValue: engine), at: target, key: key, newKey: newKey,
      progress: handler(progress, context))
    if let json { try hand(report.json, to: json, length) }
  }
}

@c @implementation
public func touchstone_backup(
  _ path: UnsafePointer<CChar>?, _ path_length: Int, _ target: UnsafePointer<CChar>?, _ target_length: Int,
  _ options: UnsafePointer<CChar>?, _ options_length: Int,
  _ progress: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, Int64) -> Int32)?,
  _ context: UnsafeMutableRawPointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?,
  _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    prepareEngines()
    let path = try string(path, path_length, "the path")
    let target = try string(target, target_length, "the path of the backup")
    var options = try Options(options, options_length)
    let key = try options.key()
    try options.end()
    let report = try Database.backup(path, to: target, key: key, progress: handler(progress, context))
    if let json { try hand(report.json, to: json, length) }
  }
}

@c @implementation
public func touchstone_upgrade(
  _ source: UnsafePointer<CChar>?, _ source_length: Int, _ target: UnsafePointer<CChar>?,
  _ target_length: Int,
  _ options: UnsafePointer<CChar>?, _ options_length: Int,
  _ progress: (@convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, Int64) -> Int32)?,
  _ context: UnsafeMutableRawPointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?,
  _ error: ErrorPlace?
) -> Int32 {
  statusWithoutHandle(error) {
    prepareEngines()
    try check(json)
    let source = try string(source, source_length, "the path of the source")
    let target = try string(target, target_length, "the path of the target")
    var options = try Options(options, options_length)
    let engine = try options.string("engine").map { EngineName(rawValue: $0) }
    let key = try options.key()
    let settings = UpgradeOptions(
      carry: try options.bool("winners") ?? false ? .winners : .full,
      isStrict: try options.bool("strict") ?? false, verifies: try options.bool("verify") ?? false,
      sourceKey: try options.key("source"))
    try options.end()
    let report = try Database.upgrade(source, to: target, engine: engine, key: key, options: settings) {
      state in
      if let progress {
        try TouchstoneC.report(progress, context, state.phase.rawValue, Int(state.done), Int(state.total))
      }
    }
    let value = try DocumentEncoder().encode(report)
    try hand(value, to: json, length)
  }
}

@c @implementation
public func touchstone_change_key(
  _ database: OpaquePointer?, _ options: UnsafePointer<CChar>?, _ options_length: Int, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    var options = try Options(options, options_length)
    guard let key = try options.key("new") else {
      throw Misuse("there is no new key: newPassphrase, newKeyHex or newKeyFile", .badRequest)
    }
    try options.end()
    try handle.perform { try $0.changeKey(key) }
  }
}
