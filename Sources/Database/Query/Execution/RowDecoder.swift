import Documents
import Fleece
import FoundationEssentials

// Rows as values of `Decodable` types. A type with members takes them from the columns by their names. A type
// with a single value takes the only column.

extension Query {
  /// Runs the query and decodes each row.
  ///
  /// ```swift
  /// struct Hotel: Decodable {
  ///   var id: String
  ///   var name: String
  ///   var opened: Date?
  /// }
  /// let hotels = try travel.query("SELECT META().id AS id, * FROM _ WHERE type = 'hotel'").run(as: Hotel.self)
  /// let names = try travel.query("SELECT name FROM _ WHERE type = 'hotel'").run(as: String.self)
  /// ```
  ///
  /// `QueryRow.decode(_:)` describes which columns a type takes.
  ///
  /// - Throws: the errors of `run(_:cancellation:)`, and `DecodingError` when a row doesn't fit. The error
  ///   names the row and the column.
  public func run<Row: Decodable>(
    as type: Row.Type, _ parameters: [String: JSONValue] = [:],
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> [Row] {
    let rows = try run(parameters, cancellation: cancellation)
    return try rows.decode(as: type) { try cancellation.check() }
  }
}

extension QueryResults {
  /// Decodes each row (`QueryRow.decode(_:)`).
  ///
  /// - Throws: `DecodingError` when a row doesn't fit. The error names the row and the column.
  public func decode<Row: Decodable>(as type: Row.Type = Row.self) throws -> [Row] {
    try decode(as: type) {}
  }

  fileprivate func decode<Row: Decodable>(as type: Row.Type, _ check: () throws -> Void) throws -> [Row] {
    var decoded: [Row] = []
    decoded.reserveCapacity(count)
    for (index, row) in enumerated() {
      try check()
      decoded.append(try RowDecoder(row).decode(type, index: index))
    }
    return decoded
  }
}

extension QueryRow {
  /// Decodes the row to a `Decodable` type. Dates, binary data, URLs, blobs and numbers are decoded as in
  /// `Document.decode` (`DocumentDecoder`).
  ///
  /// A type with members takes them from the columns by name. For a column that is a whole document (`*`), the
  /// members of the document count as columns. So `SELECT META().id AS id, * FROM _` decodes a document with
  /// its ID. If a name occurs more than once, the column of this name comes first, then the members of the
  /// first `*`, then those of the next one. If only one column is `*` and it has no alias, its own name comes
  /// last.
  ///
  /// A type with a single value takes the only column of the row: a string, a number, a boolean, `Date`,
  /// `Data`, `URL`, `Decimal`, `Blob`, or an array.
  ///
  /// - Throws: `DecodingError` when a value doesn't fit. The error names the column.
  public func decode<Row: Decodable>(_ type: Row.Type = Row.self) throws -> Row {
    try RowDecoder(self).decode(type, index: nil)
  }

  /// The members that a type with members takes.
  fileprivate func members() throws -> JSONObject {
    let columns = storage.columns
    var members = JSONObject()
    // What comes first is set last.
    for number in columns.stars { members[columns.names[number]] = try self[number].jsonValue() }
    for number in columns.stars.reversed() {
      for (name, value) in try self[number].jsonValue()?.object ?? [:] { members[name] = value }
    }
    // A named column that is missing hides a member of that name as well.
    for number in columns.named { members[columns.names[number]] = try self[number].jsonValue() }
    return members
  }
}

/// The name of a column, or the index of a row.
private struct RowCodingKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(column: String) {
    stringValue = column
    intValue = nil
  }

  init(row index: Int) {
    stringValue = "Index \(index)"
    intValue = index
  }

  init?(stringValue: String) { self.init(column: stringValue) }
  init?(intValue: Int) { self.init(row: intValue) }
}

/// Decodes a row.
private struct RowDecoder: Decoder {
  let row: QueryRow
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ row: QueryRow) { self.row = row }

  /// Decodes the row. `index` is its index in the results, if that is known.
  func decode<Row: Decodable>(_ type: Row.Type, index: Int?) throws -> Row {
    do { return try decodeAny(type) } catch let error as DecodingError { throw located(error, index) }
  }

  func decodeAny<Type: Decodable>(_ type: Type.Type) throws -> Type {
    switch type {
    case is JSONValue.Type: try DocumentDecoder().decode(type, from: .object(row.members()))
    // Other types say by the container that they ask for whether they have a single value.
    case is Date.Type, is Data.Type, is URL.Type, is Decimal.Type, is Blob.Type:
      try column(for: type).singleValueContainer().decode(type)
    default: try type.init(from: self)
    }
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try DocumentDecoder.decoder(of: .object(row.members())).container(keyedBy: type)
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try column(for: [JSONValue].self).unkeyedContainer()
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { RowValue(row: self) }

  /// A decoder of the only column.
  func column(for type: Any.Type) throws -> any Decoder {
    guard row.count == 1 else {
      throw DecodingError.typeMismatch(
        type,
        DecodingError.Context(
          codingPath: [],
          debugDescription: "\(type) takes the only column of a row, but the row has \(row.count) columns: "
            + row.columnNames.joined(separator: ", ")))
    }
    return DocumentDecoder.decoder(
      of: try row[0].jsonValue() ?? .null, at: [RowCodingKey(column: row.columnNames[0])])
  }

  /// The error with the row and the column in its path and its description.
  private func located(_ error: DecodingError, _ index: Int?) -> DecodingError {
    func located(_ context: DecodingError.Context, missing: String? = nil) -> DecodingError.Context {
      var description = context.debugDescription
      if let column = context.codingPath.first {
        description = "column \"\(column.stringValue)\": \(description)"
      } else if let missing {
        description =
          "there is no column \"\(missing)\"; the columns are \(row.columnNames.joined(separator: ", "))"
      }
      guard let index else {
        return DecodingError.Context(
          codingPath: context.codingPath, debugDescription: description,
          underlyingError: context.underlyingError)
      }
      return DecodingError.Context(
        codingPath: [RowCodingKey(row: index)] + context.codingPath,
        debugDescription: "row \(index), \(description)", underlyingError: context.underlyingError)
    }
    switch error {
    case .typeMismatch(let type, let context): return .typeMismatch(type, located(context))
    case .valueNotFound(let type, let context): return .valueNotFound(type, located(context))
    case .keyNotFound(let key, let context):
      return .keyNotFound(key, located(context, missing: key.stringValue))
    case .dataCorrupted(let context): return .dataCorrupted(located(context))
    @unknown default: return error
    }
  }
}

/// The value of a row's only column. A type that isn't one of the basic ones is decoded from the whole row, so
/// that `Hotel?` and types that wrap another type work.
private struct RowValue: SingleValueDecodingContainer {
  let row: RowDecoder
  var codingPath: [any CodingKey] { [] }

  /// Only the value of an only column can be null.
  func decodeNil() -> Bool { row.row.count == 1 && (row.row[0].isNull || !row.row[0].exists) }

  func decode<Type: Decodable>(_ type: Type.Type) throws -> Type { try row.decodeAny(type) }

  private func basic<Type: Decodable>(_ type: Type.Type) throws -> Type {
    try row.column(for: type).singleValueContainer().decode(type)
  }

  func decode(_ type: Bool.Type) throws -> Bool { try basic(type) }
  func decode(_ type: String.Type) throws -> String { try basic(type) }
  func decode(_ type: Double.Type) throws -> Double { try basic(type) }
  func decode(_ type: Float.Type) throws -> Float { try basic(type) }
  func decode(_ type: Int.Type) throws -> Int { try basic(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try basic(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try basic(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try basic(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try basic(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try basic(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try basic(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try basic(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try basic(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try basic(type) }
}
