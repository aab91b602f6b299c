import Fleece
import Storage

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
  public var endIndex: Int { storage.count }
  /// The row of an index.
  public subscript(index: Int) -> QueryRow { QueryRow(storage, storage.row(index)) }

  /// What goes through the rows.
  public func makeIterator() -> Iterator { Iterator(storage) }

  /// Goes through the rows in their order.
  public struct Iterator: IteratorProtocol {
    @usableFromInline let storage: ResultStorage
    @usableFromInline var cells: UnsafeRawPointer
    @usableFromInline var left: Int

    init(_ storage: ResultStorage) {
      self.storage = storage
      cells = storage.start
      left = storage.count
    }

    /// The next row, or nil after the last one.
    @inlinable
    public mutating func next() -> QueryRow? {
      guard left > 0 else { return nil }
      let row = QueryRow(storage, cells)
      cells += storage.rowBytes
      left &-= 1
      return row
    }
  }

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
  /// Whether both have the same columns and the same rows in the same order. Values are compared as `=` compares them,
  /// null and missing with themselves: 1 equals 1.0.
  public static func == (left: QueryResults, right: QueryResults) -> Bool {
    guard left.storage.columns.areSame(as: right.storage.columns), left.count == right.count else {
      return false
    }
    let order = ValueOrder(.empty)
    for index in left.indices {
      for column in left.columnNames.indices {
        let (first, second) = (left.storage.row(index)[column], right.storage.row(index)[column])
        guard first.isMissing == second.isMissing, order.areEqual(first, second) else { return false }
      }
    }
    return true
  }
}

/// The names of a result's columns. Two names are one when their bytes are.
// Unchecked: the memory of the texts is written by `init` alone.
final class ResultColumns: @unchecked Sendable {
  let names: [String]
  private let texts: [TextSlice]
  private let numbers: [ByteString: Int]
  /// Owns the texts.
  private let arena = EvaluationArena(capacity: 256)
  /// Among so few columns, comparing all names is quicker than hashing one.
  private static let few = 16

  init(_ names: [String]) {
    self.names = names
    texts = names.map(arena.copy)
    let keys = names.count <= Self.few ? [] : names.map { ByteString($0) }
    numbers = Dictionary(zip(keys, keys.indices), uniquingKeysWith: { first, _ in first })
  }

  /// The number of the column of a name.
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

/// The memory of rows: values that point at nothing outside of it. What has been added never changes.
@usableFromInline
final class ResultStorage: @unchecked Sendable {
  let columns: ResultColumns
  private let width: Int
  @usableFromInline let columnCount: Int
  /// From one value to the next, and from one row to the next.
  @usableFromInline let cellBytes: Int
  @usableFromInline let rowBytes: Int
  private let arena: EvaluationArena
  // The rows one behind the other. Only who makes the results adds to them, before anybody else has them.
  @exclusivity(unchecked) private var values: UnsafeMutablePointer<QueryValue>
  @exclusivity(unchecked) private var capacity = 0
  @exclusivity(unchecked) private(set) var count = 0

  init(_ columns: ResultColumns, capacity: Int = 4096) {
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

  /// The value of a column that isn't there. A copy of the pointer lies in each object: what reads rows calls nothing for it.
  @usableFromInline let missing: UnsafeRawPointer
  nonisolated(unsafe) private static let missing: UnsafeRawPointer = {
    let value = UnsafeMutablePointer<QueryValue>.allocate(capacity: 1)
    value.initialize(to: .missing)
    return UnsafeRawPointer(value)
  }()

  /// The bytes of a string, of which a value's place is told; nil when it is anything else.
  @usableFromInline
  static func utf8(of cell: UnsafeRawPointer) -> UnsafeRawBufferPointer? {
    if case .string(let text) = cell.assumingMemoryBound(to: QueryValue.self).pointee {
      text.bytes
    } else {
      nil
    }
  }

  /// The row of an index, valid as long as this object lives and no row is added.
  func row(_ index: Int) -> UnsafePointer<QueryValue> {
    precondition(index >= 0 && index < count, "there is no row \(index) of \(count)")
    return UnsafePointer(values + index * width)
  }

  /// How much memory it holds, in bytes.
  var allocatedBytes: Int { arena.allocatedBytes }

  /// Copies a row, and returns where it lies as long as this object lives.
  func copy(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) -> UnsafePointer<QueryValue> {
    let copied = arena.allocate(width, of: QueryValue.self)
    for index in 0..<width { copied[index] = arena.copy(values[index], sharedKeys) }
    return UnsafePointer(copied)
  }

  /// Room for a row at the end of the rows, for the caller to fill.
  @inline(__always)
  private func appendRow() -> UnsafeMutablePointer<QueryValue> {
    if _slowPath(count == capacity) { grow() }
    count &+= 1
    return values + (count &- 1) &* width
  }

  @inline(never)
  private func grow() {
    capacity = capacity < 1024 ? max(64, capacity * 4) : capacity * 2
    let larger = UnsafeMutablePointer<QueryValue>.allocate(capacity: capacity * width)
    larger.update(from: values, count: count * width)
    values.deallocate()
    values = larger
  }

  /// Room for a row at the end of the rows, for the caller to fill with values that point at nothing outside, but for
  /// what it has from `keep`.
  @inline(__always)
  func makeRow() -> UnsafeMutablePointer<QueryValue> { appendRow() }

  /// A copy of text that lives as long as this object.
  @inline(__always)
  func keep(_ text: TextSlice) -> TextSlice { arena.copy(text) }

  /// A copy of a value that lives as long as this object.
  func keep(_ value: QueryValue, _ sharedKeys: SharedKeys) -> QueryValue { arena.copy(value, sharedKeys) }

  /// Adds a row of the values that expressions have.
  @inline(__always)
  func append(_ columns: ExpressionList, _ context: EvaluationContext) {
    let row = appendRow()
    columns.evaluate(context, to: row)
    for index in 0..<width {
      if case .string(let text) = row[index] {
        row[index] = .string(arena.copy(text))
      } else {
        row[index] = arena.copy(row[index], context.sharedKeys)
      }
    }
  }

  /// Copies a row to the end of the rows.
  func append(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) {
    let row = appendRow()
    for index in 0..<width {
      if case .string(let text) = values[index] {
        row[index] = .string(arena.copy(text))
      } else {
        row[index] = arena.copy(values[index], sharedKeys)
      }
    }
  }

  /// Adds a row of one text.
  func append(text: String) {
    appendRow().initialize(to: .string(arena.copy(text)))
  }
}
