import Bytes
import Foundation

@testable import Scripts

/// A row of a map, as text.
struct TestRow: Equatable, CustomStringConvertible {
  var key: String
  var value: String
  var isDocument = false

  init(_ key: String, _ value: String, isDocument: Bool = false) {
    self.key = key
    self.value = value
    self.isDocument = isDocument
  }

  var description: String { "\(key): \(isDocument ? "the document" : value)" }
}

/// The JSON of a string.
func quoted(_ text: String) -> String {
  var json = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": json += "\\\""
    case "\\": json += "\\\\"
    case "\n": json += "\\n"
    default: json.unicodeScalars.append(scalar)
    }
  }
  return json + "\""
}

/// A design document with maps by name.
func design(_ maps: KeyValuePairs<String, String>, more: String = "") -> [UInt8] {
  let views = maps.map { "\(quoted($0.key)): {\"map\": \(quoted($0.value))}" }.joined(separator: ", ")
  return Array("{\"_id\": \"_design/d\", \"views\": {\(views)\(more)}}".utf8)
}

/// A batch of documents: JSON whose IDs are a, b, c…
func batch(_ documents: String...) -> ScriptBatch {
  let batch = ScriptBatch()
  for (index, json) in documents.enumerated() {
    batch.append(id: String(UnicodeScalar(UInt8(97 + index))), json: json.utf8)
  }
  return batch
}

extension ScriptRows {
  func rows(_ document: Int = 0, _ view: Int = 0) throws -> [TestRow] {
    var rows: [TestRow] = []
    try forEachRow(document: document, view: view) { key, value, isDocument in
      rows.append(TestRow(text(key), text(value), isDocument: isDocument))
    }
    return rows
  }
}

func text(_ span: RawSpan) -> String { span.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }

extension ScriptContext {
  func reduced(_ view: Int, keys: String?, values: String, rereduce: Bool = false) throws -> String {
    let keys = keys.map { Array($0.utf8) }
    let values = Array(values.utf8)
    let json = try values.withUnsafeBytes { values in
      guard let keys else {
        return try reduce(view: view, keys: nil, values: values.bytes, rereduce: rereduce)
      }
      return try keys.withUnsafeBytes {
        try reduce(view: view, keys: $0.bytes, values: values.bytes, rereduce: rereduce)
      }
    }
    return String(decoding: json, as: UTF8.self)
  }

  func verdict(_ new: String, old: String? = nil) throws -> ScriptVerdict {
    try validate(
      Array(new.utf8), old: old.map { Array($0.utf8) }, user: Array(#"{"name":"u","roles":[]}"#.utf8),
      security: Array("{}".utf8))
  }
}

/// The error that `body` throws, when it is one of scripts.
func scriptError(_ body: () throws -> Void) -> ScriptError? {
  do { try body() } catch { return error as? ScriptError }
  return nil
}

/// One map, and the rows of one document.
func mapped(_ map: String, _ document: String = #"{"_id":"a"}"#) throws -> [TestRow] {
  try JavaScript().open(designDocument: design(["x": map])).map(batch(document), views: [0]).rows()
}

extension ScriptContext {
  /// Filters for somebody who waits to the end.
  func filter(_ name: String, _ batch: ScriptBatch, request: [UInt8]) throws -> [Bool] {
    try filter(name, batch, request: request, checkWanted: {})
  }

  func filter(view name: String, _ batch: ScriptBatch) throws -> [Bool] {
    try filter(view: name, batch, checkWanted: {})
  }
}
