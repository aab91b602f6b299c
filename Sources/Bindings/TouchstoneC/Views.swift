// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Touchstone

/// What a map function of C emits, until it returns.
private final class EmittedRows {
  var rows: [(key: JSONValue, value: JSONValue?)] = []
}

/// A map function of C.
private struct MapFunction: @unchecked Sendable {
  let function: @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int) -> Int32
  let context: UnsafeMutableRawPointer?
}

extension ViewReduce {
  fileprivate static let named: [(String, ViewReduce)] = [
    ("count", .count), ("sum", .sum), ("min", .min), ("max", .max), ("average", .average),
    ("median", .median),
    ("stddev", .standardDeviation), ("stats", .stats),
  ]
}

@c @implementation
public func touchstone_view_define(
  _ database: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ name_length: Int,
  _ options: UnsafePointer<CChar>?,
  _ options_length: Int,
  _ map: (@convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int) -> Int32)?,
  _ context: UnsafeMutableRawPointer?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let database = try Handles.content(database, DatabaseHandle.self).database
    guard let map else { throw Misuse("the map function is NULL", .badRequest) }
    let name = try string(name, name_length, "the name of the view")
    var options = try Options(options, options_length)
    guard let version = try options.string("version") else {
      throw Misuse("a view needs the option version, which names its function", .badRequest)
    }
    let reduce = try options.choice("reduce", ViewReduce.named)
    let type = try options.string("documentType")
    let collation =
      try options.choice("collation", ViewCollation.allCases.map { ("\($0)", $0) }) ?? .unicode
    try options.end()
    let function = MapFunction(function: map, context: context)
    let view = try database.view(name)
    try view.setMap(version: version, collation: collation, documentType: type) { document, emit in
      let json = Array(try JSONValue.object(document.properties()).canonicalJSON().utf8CString)
      let emitted = EmittedRows()
      let emitter = OpaquePointer(Unmanaged.passUnretained(emitted).toOpaque())
      let status = json.withUnsafeBufferPointer {
        function.function(function.context, emitter, $0.baseAddress, json.count - 1)
      }
      withExtendedLifetime(emitted) {}
      for row in emitted.rows { emit(row.key, row.value) }
      if status != 0 { throw Misuse("the map function has returned \(status)", .badRequest) }
    }
    view.setReduce(reduce)
  }
}

@c @implementation
public func touchstone_emit(
  _ emitter: OpaquePointer?, _ key: UnsafePointer<CChar>?, _ key_length: Int, _ value: UnsafePointer<CChar>?,
  _ value_length: Int
) -> Int32 {
  status(nil) {
    guard let emitter else { throw Misuse("the emitter is NULL", .badRequest) }
    // It lives until the map function returns.
    let rows = Unmanaged<EmittedRows>.fromOpaque(UnsafeRawPointer(emitter)).takeUnretainedValue()
    let key = try JSONValue(json: bytes(key, key_length))
    rows.rows.append((key, value == nil ? nil : try JSONValue(json: bytes(value, value_length))))
  }
}

extension ViewQuery {
  /// Sets what options say.
  fileprivate mutating func read(_ options: inout Options) throws {
    startKey = options.value("startKey")
    endKey = options.value("endKey")
    switch options.value("keys") {
    case nil: break
    case .array(let items)?: keys = items
    default: throw Misuse("the option keys isn't an array", .badRequest)
    }
    startKeyDocumentID = try options.string("startID")
    endKeyDocumentID = try options.string("endID")
    includesStart = try options.bool("includeStart") ?? true
    includesEnd = try options.bool("includeEnd") ?? true
    prefixMatchLevel = try options.int("prefixMatch") ?? 0
    isDescending = try options.bool("descending") ?? false
    skip = try options.int("skip") ?? 0
    limit = try options.int("limit") ?? 0
    mapOnly = !(try options.bool("reduce") ?? true)
    groupsByKey = try options.bool("group") ?? false
    groupLevel = try options.int("groupLevel") ?? 0
    updateMode =
      try options.choice("update", ViewUpdateMode.allCases.map { ("\($0)", $0) }) ?? .before
    prefetches = try options.bool("documents") ?? false
    try options.end()
  }
}

@c @implementation
public func touchstone_view_query(
  _ database: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ name_length: Int,
  _ options: UnsafePointer<CChar>?,
  _ options_length: Int, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let name = try string(name, name_length, "the name of the view")
    var options = try Options(options, options_length)
    var text = Array("{\"rows\":[".utf8)
    try handle.perform { database in
      var query = try database.view(name).query()
      try query.read(&options)
      let results = try query.run()
      for (index, row) in results.enumerated() {
        if index > 0 { text.append(UInt8(ascii: ",")) }
        text += "{\"key\":\(row.keyJSON),\"value\":\(row.valueJSON)".utf8
        if let id = row.documentID { text += ",\"id\":\(try JSONValue.string(id).canonicalJSON())".utf8 }
        if query.prefetches {
          text += ",\"document\":".utf8
          text += try row.document().map { try $0.json() } ?? Array("null".utf8)
        }
        text.append(UInt8(ascii: "}"))
      }
      text += "],\"total\":\(results.totalRows),\"sequence\":\(results.sequence)}".utf8
    }
    try hand(text, to: json, length)
  }
}
