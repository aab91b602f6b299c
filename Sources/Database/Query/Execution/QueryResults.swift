import Fleece
import Storage

/// The rows of one run of a query, all from one snapshot. They can be kept, and passed to other threads.
///
/// ```swift
/// for row in try query.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
/// ```
public struct QueryResults: RandomAccessCollection, Sendable {
  private let storage: ResultStorage

  init(_ storage: ResultStorage) { self.storage = storage }

  /// The names of the columns, in order.
  public var columnNames: [String] { storage.columns.names }
  /// The index of the first row.
  public var startIndex: Int { 0 }
  /// The index after the last row.
  public var endIndex: Int { storage.count }
  /// The row at an index.
  public subscript(index: Int) -> QueryRow { QueryRow(storage, storage.row(index)) }

  /// Creates an iterator over the rows, in order.
  public func makeIterator() -> Iterator { Iterator(storage) }

  /// Iterates over the rows, in order.
  public struct Iterator: IteratorProtocol {
    @usableFromInline let storage: ResultStorage
    @usableFromInline var cells: UnsafeRawPointer
    @usableFromInline var left: Int

    init(_ storage: ResultStorage) {
      self.storage = storage
      cells = storage.start
      left = storage.count
    }

    /// The next row, or nil after the last row.
    @inlinable
    public mutating func next() -> QueryRow? {
      guard left > 0 else { return nil }
      let row = QueryRow(storage, cells)
      cells += storage.rowBytes
      left &-= 1
      return row
    }
  }

  /// Whether each row is the value of the only column, and not an object of columns (SELECT RAW).
  public var isRaw: Bool { storage.columns.isRaw }

  /// All rows as JSON, one on each line: objects whose members are in the order of the columns, or with SELECT
  /// RAW the values.
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
  /// Whether both have the same columns and the same rows in the same order. Values are compared as by `=`,
  /// so 1 equals 1.0. Null equals null, and missing equals missing.
  public static func == (left: QueryResults, right: QueryResults) -> Bool {
    guard left.storage.columns.areSame(as: right.storage.columns), left.count == right.count else {
      return false
    }
    return left.indices.allSatisfy { left.row($0, equals: $0, of: right) }
  }

  /// Whether a row equals a row of results with the same columns.
  func row(_ index: Int, equals other: Int, of results: QueryResults) -> Bool {
    let order = ValueOrder(.empty)
    let (left, right) = (storage.row(index), results.storage.row(other))
    for column in 0..<storage.columnCount where !order.areSame(left[column], right[column]) { return false }
    return true
  }

  /// A value. It is valid as long as the results are held.
  func value(_ row: Int, _ column: Int) -> QueryValue { storage.row(row)[column] }
}

extension ValueOrder {
  /// Whether two values are equal and both or neither of them are missing.
  func areSame(_ left: QueryValue, _ right: QueryValue) -> Bool {
    left.isMissing == right.isMissing && areEqual(left, right)
  }
}

/// The names of the columns of a result. Names are compared by their bytes.
// Unchecked: only `init` writes the memory of the texts.
final class ResultColumns: @unchecked Sendable {
  let names: [String]
  /// The numbers of the columns that are whole documents, `*`.
  let stars: [Int]
  /// The numbers of all columns, without a `*` that has no alias and is the only one.
  let named: [Int]
  /// Whether a row is the value of the only column.
  let isRaw: Bool
  private let texts: [TextSlice]
  private let numbers: [ByteString: Int]
  /// Owns the texts.
  private let arena = EvaluationArena(capacity: 256)
  /// The number of columns up to which comparing all names is faster than hashing one.
  private static let few = 16

  /// The columns of a query.
  convenience init(_ query: ResolvedQuery) {
    let columns = query.columns
    guard !query.isRaw else {
      // Like a `*` without an alias, the value gives its members to types that are decoded from rows.
      self.init(columns.map(\.name.string), stars: [0], named: [], isRaw: true)
      return
    }
    let stars = columns.indices.filter { columns[$0].isStar }
    self.init(
      columns.map(\.name.string), stars: stars,
      named: columns.indices.filter { stars != [$0] || columns[$0].isNamed })
  }

  /// Columns that are no `*`.
  convenience init(_ names: [String]) { self.init(names, stars: [], named: Array(names.indices)) }

  private init(_ names: [String], stars: [Int], named: [Int], isRaw: Bool = false) {
    self.isRaw = isRaw
    self.names = names
    self.stars = stars
    self.named = named
    texts = names.map(arena.copy)
    let keys = names.count <= Self.few ? [] : names.map { ByteString($0) }
    numbers = Dictionary(zip(keys, keys.indices), uniquingKeysWith: { first, _ in first })
  }

  /// The index of the column with a name. Nil when there is none.
  func number(of name: String) -> Int? {
    if !numbers.isEmpty { return numbers[ByteString(name)] }
    var name = name
    return name.withUTF8 { utf8 in
      let name = TextSlice(UnsafeRawBufferPointer(utf8))
      return texts.firstIndex { $0.equals(name) }
    }
  }

  /// Whether both have the same names in the same order.
  func areSame(as other: ResultColumns) -> Bool {
    self === other
      || texts.count == other.texts.count && zip(texts, other.texts).allSatisfy { $0.equals($1) }
  }
}

/// Memory for the rows of a result. Its values never point outside of it. A row never changes after it was
/// added.
@usableFromInline
final class ResultStorage: @unchecked Sendable {
  let columns: ResultColumns
  private let width: Int
  @usableFromInline let columnCount: Int
  /// The distance between two values, and between two rows, in bytes.
  @usableFromInline let cellBytes: Int
  @usableFromInline let rowBytes: Int
  private let arena: EvaluationArena
  // All rows, one after the other. Only the code that produces the results appends to them, before anything
  // else has access.
  @exclusivity(unchecked) private var values: UnsafeMutablePointer<QueryValue>
  @exclusivity(unchecked) private var capacity = 0
  @exclusivity(unchecked) private(set) var count = 0

  // Most results are small, and small blocks are allocated faster.
  init(_ columns: ResultColumns, capacity: Int = 1000) {
    self.columns = columns
    columnCount = columns.names.count
    width = max(1, columnCount)
    cellBytes = MemoryLayout<QueryValue>.stride
    rowBytes = width * cellBytes
    arena = EvaluationArena(capacity: capacity)
    values = .allocate(capacity: 0)
    missing = ResultStorage.missing
  }

  deinit { values.deallocate() }

  /// The first row.
  var start: UnsafeRawPointer { UnsafeRawPointer(values) }

  /// The value of a column that doesn't exist. Each object has a copy of the pointer, so that readers of rows
  /// don't need a call.
  @usableFromInline let missing: UnsafeRawPointer
  nonisolated(unsafe) private static let missing: UnsafeRawPointer = {
    let value = UnsafeMutablePointer<QueryValue>.allocate(capacity: 1)
    value.initialize(to: .missing)
    return UnsafeRawPointer(value)
  }()

  /// The UTF-8 bytes of a string in a cell. Nil for other types.
  @usableFromInline
  static func utf8(of cell: UnsafeRawPointer) -> UnsafeRawBufferPointer? {
    if case .string(let text) = cell.assumingMemoryBound(to: QueryValue.self).pointee {
      text.bytes
    } else {
      nil
    }
  }

  /// The row at an index. It is valid as long as this object lives and no row is added.
  func row(_ index: Int) -> UnsafePointer<QueryValue> {
    precondition(index >= 0 && index < count, "there is no row \(index) of \(count)")
    return UnsafePointer(values + index * width)
  }

  /// The memory in use for values, in bytes. The table of rows isn't part of it.
  var allocatedBytes: Int { arena.allocatedBytes }
  /// The memory of the table of rows, in bytes.
  var rowCapacityBytes: Int { capacity * rowBytes }

  /// Copies a row. The result is valid as long as this object lives.
  func copy(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) -> UnsafePointer<QueryValue> {
    UnsafePointer(arena.copy(values, count: width, sharedKeys))
  }

  /// Reserves a row at the end. The caller fills it with values that don't point outside of this object.
  /// Values from `keep` may be used.
  @inline(__always)
  func appendRow() -> UnsafeMutablePointer<QueryValue> {
    if _slowPath(count == capacity) { grow() }
    count &+= 1
    return values + (count &- 1) &* width
  }

  @inline(never)
  private func grow() {
    capacity = capacity < 1024 ? max(8, capacity * 4) : capacity * 2
    let larger = UnsafeMutablePointer<QueryValue>.allocate(capacity: capacity * width)
    larger.update(from: values, count: count * width)
    values.deallocate()
    values = larger
  }

  /// Copies text. The copy lives as long as this object.
  @inline(__always)
  func keep(_ text: TextSlice) -> TextSlice { arena.copy(text) }

  /// Copies a value. The copy lives as long as this object.
  func keep(_ value: QueryValue, _ sharedKeys: SharedKeys) -> QueryValue { arena.copy(value, sharedKeys) }

  /// Appends a row with the values of expressions.
  @inline(__always)
  func append(_ columns: ExpressionList, _ context: EvaluationContext) {
    let row = appendRow()
    columns.evaluate(context, to: row)
    keep(row, to: row, context.sharedKeys)
  }

  /// Appends a copy of a row.
  func append(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) {
    keep(values, to: appendRow(), sharedKeys)
  }

  @inline(__always)
  private func keep(
    _ values: UnsafePointer<QueryValue>, to row: UnsafeMutablePointer<QueryValue>, _ sharedKeys: SharedKeys
  ) {
    for index in 0..<width {
      if case .string(let text) = values[index] {
        row[index] = .string(arena.copy(text))
      } else {
        row[index] = arena.copy(values[index], sharedKeys)
      }
    }
  }

  /// Appends a row of one text.
  func append(text: String) {
    appendRow().initialize(to: .string(arena.copy(text)))
  }
}
