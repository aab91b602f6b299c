import Bytes
import Storage

@testable import Views

/// A row of the tests of reducers: its parts as text.
struct TestRow: Hashable {
  /// Stands for the encoded key.
  var key: String
  var documentID: String
  var emission: UInt32 = 0
  var keyJSON = "null"
  /// Nil: the row refers to its document.
  var value: String?

  var rowKey: [UInt8] {
    var buffer = ByteBuffer()
    key.utf8CString.withUnsafeBytes { buffer.append($0) }
    Array(documentID.utf8).withUnsafeBytes { StoredRow.escape($0, into: &buffer) }
    if emission > 0 { buffer.append(bigEndian: emission) }
    return Array(buffer.bytes)
  }

  var rowValue: [UInt8] {
    var buffer = ByteBuffer()
    Array(keyJSON.utf8).withUnsafeBytes { keyJSON in
      Array((value ?? "").utf8).withUnsafeBytes { valueJSON in
        StoredRow.write(
          kind: value == nil ? .document : .json, keyLength: key.utf8.count + 1, sequence: 1,
          keyJSON: keyJSON, into: &buffer)
        buffer.append(valueJSON)
      }
    }
    return Array(buffer.bytes)
  }

  func withRow(_ body: (borrowing StoredRow) throws -> Void) throws {
    let key = rowKey
    let value = rowValue
    try body(try StoredRow(key.span.bytes, value.span.bytes))
  }
}

/// The document that rows without a value refer to.
let expandedDocument = #"{"_id":"x","n":1}"#

func testExpansion(_ row: borrowing StoredRow) -> [UInt8] { Array(expandedDocument.utf8) }

extension Reducer {
  /// The result for values, reduced at once.
  func result(_ values: [String]) throws -> String { try result(rows: values.testRows) }

  func result(rows: [TestRow]) throws -> String {
    let reduction = try makeReduction()
    for row in rows { try row.withRow { try reduction.add($0, expanding: testExpansion) } }
    return try reduction.text
  }

  func partial(_ rows: some Sequence<TestRow>) throws -> [UInt8] {
    let reduction = try makeReduction()
    for row in rows { try row.withRow { try reduction.add($0, expanding: testExpansion) } }
    return try reduction.partial
  }
}

extension Reduction {
  func merge(_ partial: [UInt8]) throws { try merge(partial.span.bytes) }

  var text: String {
    get throws {
      var json: [UInt8] = []
      try result(to: &json)
      return String(decoding: json, as: UTF8.self)
    }
  }

  var partial: [UInt8] {
    get throws {
      var buffer = ByteBuffer()
      try write(to: &buffer)
      return Array(buffer.bytes)
    }
  }
}

extension [String] {
  /// Rows with these values, in this order.
  var testRows: [TestRow] {
    enumerated().map { index, value in
      TestRow(key: String(1_000_000 + index), documentID: "d\(index)", keyJSON: String(index), value: value)
    }
  }
}
