import Fleece

/// The rows of one run of a query, all of one snapshot. They may be kept, and passed to other threads.
///
/// ```swift
/// for row in try query.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
/// ```
public struct QueryResults: RandomAccessCollection, Sendable {
  private let storage: ResultStorage

  init(_ storage: ResultStorage) { self.storage = storage }

  /// The names of the columns, in their order.
  public var columnNames: [String] { storage.columns.names }
  /// The index of the first row.
  public var startIndex: Int { 0 }
  /// One more than the index of the last row.
  public var endIndex: Int { storage.rows.count }
  /// The row of an index.
  public subscript(index: Int) -> QueryRow { QueryRow(storage.columns, storage, storage.rows[index]) }

  /// All rows as JSON objects, one a line, members in the order of the columns.
  public func jsonLines() throws -> [UInt8] {
    var lines: [UInt8] = []
    for row in self {
      try row.writeJSON(into: &lines)
      lines.append(UInt8(ascii: "\n"))
    }
    return lines
  }
}

extension QueryResults: Equatable {
  /// Whether both have the same columns and the same rows in the same order.
  public static func == (left: QueryResults, right: QueryResults) -> Bool {
    guard left.columnNames == right.columnNames, left.count == right.count else { return false }
    let order = ValueOrder(.empty)
    for index in left.indices {
      for column in left.columnNames.indices {
        let (first, second) = (left.storage.rows[index][column], right.storage.rows[index][column])
        guard first.isMissing == second.isMissing, order.areEqual(first, second) else { return false }
      }
    }
    return true
  }
}

/// The names of a result's columns.
final class ResultColumns: Sendable {
  let names: [String]
  private let numbers: [String: Int]

  init(_ names: [String]) {
    self.names = names
    numbers = Dictionary(zip(names, names.indices), uniquingKeysWith: { first, _ in first })
  }

  func number(of name: String) -> Int? { numbers[name] }
}

/// The memory of rows: values that point at nothing outside of it. What has been added never changes.
final class ResultStorage: @unchecked Sendable {
  let columns: ResultColumns
  // Only who makes the results adds to them, before anybody else has them.
  private(set) var rows: [UnsafePointer<QueryValue>] = []
  private let arena: EvaluationArena

  init(_ columns: ResultColumns, capacity: Int = 4096) {
    self.columns = columns
    arena = EvaluationArena(capacity: capacity)
  }

  /// How much memory it holds, in bytes.
  var allocatedBytes: Int { arena.allocatedBytes }

  /// Copies a row, and returns where it lies as long as this object lives.
  func copy(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) -> UnsafePointer<QueryValue> {
    let count = columns.names.count
    let copied = arena.allocate(max(1, count), of: QueryValue.self)
    for index in 0..<count { copied[index] = arena.copy(values[index], sharedKeys) }
    return UnsafePointer(copied)
  }

  /// Copies a row to the end of the rows.
  func append(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) {
    rows.append(copy(values, sharedKeys))
  }

  /// Adds a row of one text.
  func append(text: String) {
    let values = arena.allocate(1, of: QueryValue.self)
    values.initialize(to: .string(arena.copy(text)))
    rows.append(UnsafePointer(values))
  }
}
