import Documents
import Fleece

/// A row of a query's results. It may be kept, and passed to other threads.
public struct QueryRow: @unchecked Sendable {
  // The values lie in it and never change. What a client reads is inlined there, so that a row or a value that isn't kept
  // retains nothing.
  @usableFromInline let storage: ResultStorage
  @usableFromInline let cells: UnsafeRawPointer

  @inlinable @inline(__always)
  init(_ storage: ResultStorage, _ cells: UnsafeRawPointer) {
    self.storage = storage
    self.cells = cells
  }

  private var values: UnsafePointer<QueryValue> { cells.assumingMemoryBound(to: QueryValue.self) }
  private var columns: ResultColumns { storage.columns }

  /// The names of the columns, in their order.
  public var columnNames: [String] { columns.names }

  /// How many columns there are.
  public var count: Int { columns.names.count }

  /// The value of a column by its place, from 0. A place beyond the last is missing.
  @inlinable
  public subscript(column: Int) -> QueryResultValue {
    QueryResultValue(
      column >= 0 && column < storage.columnCount
        ? cells + column &* storage.cellBytes : storage.missing, storage)
  }

  /// The value of a column by its name. A name that no column has is missing.
  public subscript(name: String) -> QueryResultValue {
    QueryResultValue(
      columns.number(of: name).map { UnsafeRawPointer(values + $0) } ?? storage.missing, storage)
  }

  /// The row as an object, without the columns that are missing.
  public func jsonObject() throws -> JSONObject {
    var object = JSONObject()
    for (number, name) in columns.names.enumerated() {
      if let value = try values[number].jsonValue(.empty) { object[name] = value }
    }
    return object
  }

  /// Appends the row as a JSON object, its members in the order of the columns; missing ones are left out.
  public func writeJSON(into json: inout [UInt8]) throws {
    var writer = JSONWriter()
    try write(into: &writer)
    writer.write(to: &json)
  }

  private func write(into writer: inout JSONWriter) throws {
    try withExtendedLifetime(storage) {
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

  /// The row as the text of a JSON object.
  public func json() throws -> String {
    var writer = JSONWriter()
    try write(into: &writer)
    return writer.string
  }

  /// The row as a value of a type of one's own, whose members are named as the columns. Dates, binary data, URLs and
  /// numbers are read as `Document.decode` reads them (`DocumentDecoder`).
  ///
  /// - Throws: `DecodingError` for what doesn't fit.
  public func decode<Row: Decodable>(_ type: Row.Type = Row.self) throws -> Row {
    try DocumentDecoder().decode(type, from: .object(jsonObject()))
  }
}

/// A value of a query's row. It keeps what it lies in alive.
public struct QueryResultValue: @unchecked Sendable {
  @usableFromInline let cell: UnsafeRawPointer
  @usableFromInline let storage: ResultStorage

  @inlinable @inline(__always)
  init(_ cell: UnsafeRawPointer, _ storage: ResultStorage) {
    self.cell = cell
    self.storage = storage
  }

  var value: QueryValue { cell.assumingMemoryBound(to: QueryValue.self).pointee }

  /// Whether there is a value: null is one.
  public var exists: Bool { !value.isMissing }
  /// Whether it is JSON's null.
  public var isNull: Bool { if case .null = value { true } else { false } }
  /// What N1QL's TYPE says: `missing`, `null`, `boolean`, `number`, `string`, `array`, `object` or `binary`.
  public var typeName: String { "\(value.type.name)" }
  /// True or false, nil when it is anything else.
  public var bool: Bool? { if case .bool(let value) = value { value } else { nil } }
  /// An integer, nil when it is anything else, a double too, or above `Int64.max`.
  public var int: Int64? { if case .int(let value) = value { value } else { nil } }
  /// An integer that isn't negative, also above `Int64.max`; nil when it is anything else, a double too.
  public var uint: UInt64? {
    switch value {
    case .int(let value): UInt64(exactly: value)
    case .uint(let value): value
    default: nil
    }
  }
  /// A number, an integer converted; nil when it is anything else.
  public var double: Double? { value.number }
  /// A string, nil when it is anything else.
  public var string: String? { withExtendedLifetime(storage) { value.text?.string } }
  /// Calls `body` with a string's UTF-8 where it lies, which stays until `body` returns; nil when it is anything else.
  @inlinable
  @discardableResult
  public func withUTF8<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result? {
    guard let utf8 = ResultStorage.utf8(of: cell) else { return nil }
    return try withExtendedLifetime(storage) { try body(utf8) }
  }
  /// The number of items of an array or of members of an object; 0 of anything else.
  public var count: Int { value.count }

  /// The item of an index, negative from the end; missing when there is none.
  public subscript(index: Int) -> QueryResultValue {
    guard case .computedArray(let array) = value else {
      return QueryResultValue(storage.missing, storage)
    }
    let index = index < 0 ? array.count &+ index : index
    guard index >= 0, index < array.count else { return QueryResultValue(storage.missing, storage) }
    return QueryResultValue(array.items + index, storage)
  }

  /// The member of a name, missing when this isn't an object.
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

  /// The value in memory; nil when it is missing.
  public func jsonValue() throws -> JSONValue? {
    try withExtendedLifetime(storage) { try value.jsonValue(.empty) }
  }

  /// Appends the value's JSON; of a missing one `null`.
  public func writeJSON(into json: inout [UInt8]) throws {
    try withExtendedLifetime(storage) { try value.writeJSON(.empty, into: &json) }
  }

  /// The value as a value of a type of one's own; a missing value as null. It is read as `Document.decode` reads a
  /// property (`DocumentDecoder`).
  ///
  /// - Throws: `DecodingError` for what doesn't fit.
  public func decode<Result: Decodable>(_ type: Result.Type = Result.self) throws -> Result {
    try DocumentDecoder().decode(type, from: jsonValue() ?? .null)
  }
}
