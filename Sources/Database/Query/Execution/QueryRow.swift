import Documents
import Fleece

/// A row of a query's results. It can be kept, and passed to other threads.
public struct QueryRow: @unchecked Sendable {
  // The storage contains the values, which never change. Accessors are inlined into client code, so that
  // reading a row or value without keeping it needs no retain.
  @usableFromInline let storage: ResultStorage
  @usableFromInline let cells: UnsafeRawPointer

  @inlinable @inline(__always)
  init(_ storage: ResultStorage, _ cells: UnsafeRawPointer) {
    self.storage = storage
    self.cells = cells
  }

  private var values: UnsafePointer<QueryValue> { cells.assumingMemoryBound(to: QueryValue.self) }
  private var columns: ResultColumns { storage.columns }

  /// The names of the columns, in order.
  public var columnNames: [String] { columns.names }

  /// The number of columns.
  public var count: Int { columns.names.count }

  /// The value of a column by its index, from 0. Missing for an index out of range.
  @inlinable
  public subscript(column: Int) -> QueryResultValue {
    QueryResultValue(
      column >= 0 && column < storage.columnCount
        ? cells + column &* storage.cellBytes : storage.missing, storage)
  }

  /// The value of a column by its name. Missing when no column has the name.
  public subscript(name: String) -> QueryResultValue {
    QueryResultValue(
      columns.number(of: name).map { UnsafeRawPointer(values + $0) } ?? storage.missing, storage)
  }

  /// Whether the row is the value of its only column, and not an object of columns (SELECT RAW).
  public var isRaw: Bool { columns.isRaw }

  /// The row as a value: an object without missing columns, or with SELECT RAW the value of the column. A
  /// missing value is null.
  public func jsonValue() throws -> JSONValue {
    isRaw ? try values[0].jsonValue(.empty) ?? .null : .object(try jsonObject())
  }

  /// The row as an object, without missing columns. With SELECT RAW, an object is returned as it is, and
  /// another value as the member with the column's name.
  public func jsonObject() throws -> JSONObject {
    if isRaw, case .object(let object)? = try values[0].jsonValue(.empty) { return object }
    var object = JSONObject()
    for (number, name) in columns.names.enumerated() {
      if let value = try values[number].jsonValue(.empty) { object[name] = value }
    }
    return object
  }

  /// Appends the row as JSON: an object, or with SELECT RAW the value. Members are in the order of the columns,
  /// and missing ones are left out. A missing value of SELECT RAW is null.
  public func writeJSON(into json: inout [UInt8]) throws {
    var writer = JSONWriter()
    try write(into: &writer)
    writer.write(to: &json)
  }

  private func write(into writer: inout JSONWriter) throws {
    try withExtendedLifetime(storage) {
      guard !isRaw else { return try values[0].writeJSON(.empty, into: &writer) }
      writer.append(byte: UInt8(ascii: "{"))
      var isFirst = true
      for (number, name) in columns.names.enumerated() where !values[number].isMissing {
        if !isFirst { writer.append(byte: UInt8(ascii: ",")) }
        isFirst = false
        writer.append(string: name)
        writer.append(byte: UInt8(ascii: ":"))
        try values[number].writeJSON(.empty, into: &writer)
      }
      writer.append(byte: UInt8(ascii: "}"))
    }
  }

  /// The row as JSON text: an object, or with SELECT RAW the value.
  public func json() throws -> String {
    var writer = JSONWriter()
    try write(into: &writer)
    return writer.string
  }
}

/// A value in a row of a query's results. It keeps its memory alive.
public struct QueryResultValue: @unchecked Sendable {
  @usableFromInline let cell: UnsafeRawPointer
  @usableFromInline let storage: ResultStorage

  @inlinable @inline(__always)
  init(_ cell: UnsafeRawPointer, _ storage: ResultStorage) {
    self.cell = cell
    self.storage = storage
  }

  var value: QueryValue { cell.assumingMemoryBound(to: QueryValue.self).pointee }

  /// Whether there is a value. Null is a value.
  public var exists: Bool { !value.isMissing }
  /// Whether it is JSON's null.
  public var isNull: Bool { if case .null = value { true } else { false } }
  /// The type as N1QL's TYPE names it: `missing`, `null`, `boolean`, `number`, `string`, `array`, `object` or
  /// `binary`.
  public var typeName: String { "\(value.type.name)" }
  /// The boolean. Nil for other types.
  public var bool: Bool? { if case .bool(let value) = value { value } else { nil } }
  /// The integer. Nil for other types, for doubles, and for integers above `Int64.max`.
  public var int: Int64? { if case .int(let value) = value { value } else { nil } }
  /// The integer, if it isn't negative. Integers above `Int64.max` are included. Nil for other types and for
  /// doubles.
  public var uint: UInt64? {
    switch value {
    case .int(let value): UInt64(exactly: value)
    case .uint(let value): value
    default: nil
    }
  }
  /// The number as a double. Integers are converted. Nil for other types.
  public var double: Double? { value.number }
  /// The string. Nil for other types.
  public var string: String? { withExtendedLifetime(storage) { value.text?.string } }
  /// Calls `body` with the string's UTF-8 bytes, without a copy. The bytes are valid until `body` returns.
  /// Nil for other types.
  @inlinable
  @discardableResult
  public func withUTF8<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
    guard let utf8 = ResultStorage.utf8(of: cell) else { return nil }
    return try withExtendedLifetime(storage) { try body(utf8) }
  }
  /// The number of items of an array, or of members of an object. 0 for other types.
  public var count: Int { value.count }

  /// The item of an array at an index. A negative index counts from the end. Missing when there is no such
  /// item.
  public subscript(index: Int) -> QueryResultValue {
    guard case .computedArray(let array) = value else {
      return QueryResultValue(storage.missing, storage)
    }
    let index = index < 0 ? array.count &+ index : index
    guard index >= 0, index < array.count else { return QueryResultValue(storage.missing, storage) }
    return QueryResultValue(array.items + index, storage)
  }

  /// The member of an object by its name. Missing when there is none.
  public subscript(name: String) -> QueryResultValue {
    guard case .computedObject(let object) = value else {
      return QueryResultValue(storage.missing, storage)
    }
    var name = name
    let member = withExtendedLifetime(storage) {
      name.withUTF8 { object.place(of: TextSlice(UnsafeRawBufferPointer($0))) }
    }
    return QueryResultValue(member.map { UnsafeRawPointer($0) } ?? storage.missing, storage)
  }

  /// The value as a `JSONValue`. Nil when it is missing.
  public func jsonValue() throws -> JSONValue? {
    try withExtendedLifetime(storage) { try value.jsonValue(.empty) }
  }

  /// Appends the value as JSON. A missing value is written as `null`.
  public func writeJSON(into json: inout [UInt8]) throws {
    try withExtendedLifetime(storage) { try value.writeJSON(.empty, into: &json) }
  }

  /// Decodes the value to a `Decodable` type. A missing value is decoded as null. Decoding works as for a
  /// property in `Document.decode` (`DocumentDecoder`).
  ///
  /// - Throws: `DecodingError` when the value doesn't fit.
  public func decode<Result: Decodable>(_ type: Result.Type = Result.self) throws -> Result {
    try DocumentDecoder().decode(type, from: jsonValue() ?? .null)
  }
}
