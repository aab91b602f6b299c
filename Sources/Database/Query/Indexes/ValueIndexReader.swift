import Bytes
import Documents
import Storage

/// A value index in a snapshot, for the planner and for queries: its statistics, and its entries in order.
///
/// Use it from one thread at a time, and only while the snapshot is open.
final class ValueIndexReader {
  /// Empty for a reader of entries only.
  let name: String
  let handle: IndexHandle
  /// The approximate number of entries when the reader was opened, for the planner. 0 for a reader of entries
  /// only.
  let count: Int
  /// The last statistics. Nil when there are none, and for a reader of entries only.
  let statistics: ValueIndexStatistics?
  /// Whether the member values of objects have entries. False for a reader of entries only.
  let hasObjects: Bool
  private let transaction: any ReadTransaction
  private let keyspace: Keyspace
  private let columns: Int
  /// The limits of the query that reads the entries. Nil when no query does.
  private let limits: QueryLimits?

  /// Opens an index in a snapshot (`DocumentSnapshot.storage`).
  init(_ index: IndexRecord, _ definition: ValueIndexDefinition, in transaction: any ReadTransaction) throws {
    guard let keyspace = try transaction.keyspace(named: index.keyspaceName) else {
      throw QueryError(
        .index, "the entries of the index \"\(index.name)\" are missing; delete it and make it again")
    }
    name = index.name
    limits = nil
    self.transaction = transaction
    self.keyspace = keyspace
    columns = definition.expressions.count
    handle = IndexHandle(keyspace: keyspace, columns: columns)
    count = try transaction.entryCount(of: keyspace).estimate
    statistics = try ValueIndexStatistics.load(index, columns: columns, transaction)
    hasObjects = try ValueIndexContents.hasObjects(index, definition, in: transaction)
  }

  /// Opens an index for reading entries in a run of a query. The index was opened before, so this reads
  /// nothing from the engine.
  init(_ handle: IndexHandle, in transaction: any ReadTransaction, _ limits: QueryLimits) {
    name = ""
    self.limits = limits
    self.handle = handle
    self.transaction = transaction
    keyspace = handle.keyspace
    columns = handle.columns
    count = 0
    statistics = nil
    hasObjects = false
  }

  /// For the first 1, 2, … expressions, the approximate number of entries that share their values. Empty when
  /// unknown.
  var entriesPerPrefix: [Double] { statistics?.entriesPerPrefix(of: count) ?? [] }

  /// Calls `body` with each entry between two edges until it returns false. Entries come in the order of
  /// their values, and entries with equal values in the order of document IDs. An entry is valid until `body`
  /// returns.
  ///
  /// The edges are encoded values (`OrderedKeyEncoder`) of the leading expressions. They can be longer than
  /// the keys of an engine.
  func scan(
    from lower: KeyRange.Edge = .unbounded, to upper: KeyRange.Edge = .unbounded, descending: Bool = false,
    _ body: (ValueIndexEntry) throws -> Bool
  ) throws {
    let columns = columns
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    try scan(
      from: lower, to: upper, descending: descending,
      plain: { try body(try ValueIndexEntry(key: $0, value: nothing, columns: columns)) }, other: body)
  }

  /// The same, but plain entries are passed as keys. Such a key is whole, begins with the bytes that both
  /// edges begin with, and contains all values.
  @inline(__always)
  func scan(
    from lower: KeyRange.Edge, to upper: KeyRange.Edge, descending: Bool,
    plain: (_ key: UnsafeRawBufferPointer) throws -> Bool, other body: (ValueIndexEntry) throws -> Bool
  ) throws {
    let turns = ValueIndexTurns(from: lower, to: upper, descending: descending, columns, limits)
    try transaction.scan(keyspace, turns.range, order: turns.order, fetch: .entries) { key, value in
      try key.withUnsafeBytes { key in
        try value.withUnsafeBytes { value in
          if _fastPath(turns.arePlain(key, value)) { return try plain(key) }
          return try turns.take(key, value, body)
        }
      }
    }
    try turns.finish(body)
  }

  /// The ranges that have entries. `ranges` are in order and don't overlap. The first key at or after the
  /// start of a range shows that all ranges before that key are empty. This is cheaper than one scan for each
  /// range when most ranges are empty.
  func withEntries(_ ranges: [ByteRange]) throws -> [ByteRange] {
    guard let end = ranges.last?.upperEdge,
      !ranges.contains(where: { $0.lowerEdge.isCut || $0.upperEdge.isCut })
    else { return ranges }
    var found: [ByteRange] = []
    var index = 0
    while index < ranges.count {
      var first: [UInt8]?
      let rest = KeyRange.orderedKeys(from: ranges[index].lowerEdge, to: end)
      try transaction.scan(keyspace, rest, order: .ascending, fetch: .keys) { key, _ in
        first = [UInt8](copying: key)
        return false
      }
      guard let first else { break }
      while index < ranges.count, let upper = ranges[index].upper, !first.lexicographicallyPrecedes(upper) {
        index += 1
      }
      if index < ranges.count, !first.lexicographicallyPrecedes(ranges[index].lower) {
        found.append(ranges[index])
        index += 1
      }
    }
    return found
  }

  /// The same scan, with a lookup of the documents. `plain` returns the document ID in a plain entry's key,
  /// or nil for an entry that isn't wanted. `document` receives the entry's key, the ID in it, and the
  /// document's record. For entries passed to `other`, no document is read.
  @inline(__always)
  func follow(
    with documents: DocumentReader, from lower: KeyRange.Edge, to upper: KeyRange.Edge, descending: Bool,
    plain: (_ key: UnsafeRawBufferPointer) throws -> UnsafeRawBufferPointer?,
    other body: (ValueIndexEntry) throws -> Bool,
    document: (_ key: UnsafeRawBufferPointer, _ id: UnsafeRawBufferPointer, _ record: RawSpan) throws -> Bool
  ) throws {
    let turns = ValueIndexTurns(from: lower, to: upper, descending: descending, columns, limits)
    // The length of the ID at the end of the current entry's key.
    var idLength = 0
    try documents.follow(
      keyspace, turns.range, order: turns.order,
      reference: { key, value in
        try key.withUnsafeBytes { key in
          try value.withUnsafeBytes { value in
            if _fastPath(turns.arePlain(key, value)) {
              guard let id = try plain(key) else { return .none }
              idLength = id.count
              return .inKey((key.count &- id.count)..<key.count)
            }
            return try turns.take(key, value, body) ? .none : .end
          }
        }
      },
      { key, _, record in
        try key.withUnsafeBytes { key in
          let id = UnsafeRawBufferPointer(rebasing: key[(key.count &- idLength)...])
          turns.goesOn = try document(key, id, record)
          return turns.goesOn
        }
      })
    try turns.finish(body)
  }
}

/// Processes the entries of a scan. Entries that share a cut prefix are sorted first.
///
/// `arePlain` tells whether an entry can be taken directly. All others go through `take`, and `finish` ends
/// the scan.
final class ValueIndexTurns {
  private let descending: Bool
  private let columns: Int
  private let limits: QueryLimits?
  /// The range that the engine scans.
  let range: KeyRange
  var order: ScanOrder { descending ? .descending : .ascending }
  /// The exact range, when an edge was cut and the engine's range is too wide. Nil otherwise.
  private let bounds: KeyRange?
  private var run: ValueIndexRun?
  // One thread uses it, so exclusivity checks aren't needed.
  @exclusivity(unchecked) private var isPlain: Bool
  @exclusivity(unchecked) var goesOn = true

  init(
    from lower: KeyRange.Edge, to upper: KeyRange.Edge, descending: Bool, _ columns: Int,
    _ limits: QueryLimits?
  ) {
    self.descending = descending
    self.columns = columns
    self.limits = limits
    range = KeyRange.orderedKeys(from: lower.cut, to: upper.cut)
    bounds = lower.isCut || upper.isCut ? KeyRange.orderedKeys(from: lower, to: upper) : nil
    isPlain = bounds == nil
  }

  /// Whether an entry is plain, and no other entry has to come before it.
  @inline(__always)
  func arePlain(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    value.count == 0 && key.count <= OrderedKeyLimits.cutPrefixBytes && isPlain
  }

  @inline(never)
  func take(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ body: (ValueIndexEntry) throws -> Bool
  ) throws -> Bool {
    if let finished = run, !finished.continues(with: key) {
      run = nil
      isPlain = bounds == nil
      goesOn = try finished.forEach(descending, body)
      if !goesOn { return false }
    }
    if key.count > OrderedKeyLimits.cutPrefixBytes {
      let started = run ?? ValueIndexRun(key, limits)
      run = started
      isPlain = false
      try started.append(key, value, columns, bounds)
      return true
    }
    let entry = try ValueIndexEntry(key: key, value: value, columns: columns)
    // A short key is in its right place. It can only be outside of the range when an edge was cut.
    if let bounds, !bounds.contains(entry.key) { return true }
    goesOn = try body(entry)
    return goesOn
  }

  /// Passes on the entries that still wait.
  func finish(_ body: (ValueIndexEntry) throws -> Bool) throws {
    guard goesOn, let run else { return }
    goesOn = try run.forEach(descending, body)
  }
}

/// Entries whose keys share the first 479 bytes. The cut ones among them aren't in order.
private final class ValueIndexRun {
  private let prefix: [UInt8]
  /// The entries, whose memory is in the arena.
  private var entries: [ValueIndexEntry] = []
  private let arena: EvaluationArena
  private let limits: QueryLimits?
  private static let entryBytes = MemoryLayout<ValueIndexEntry>.stride

  init(_ key: UnsafeRawBufferPointer, _ limits: QueryLimits?) {
    prefix = [UInt8](key.prefix(OrderedKeyLimits.cutPrefixBytes))
    self.limits = limits
    arena = EvaluationArena(capacity: 4_096, limits?.budget)
  }

  deinit { limits?.budget.giveBack(entries.count * ValueIndexRun.entryBytes) }

  func continues(with key: UnsafeRawBufferPointer) -> Bool {
    key.count > prefix.count && key.prefix(prefix.count).elementsEqual(prefix)
  }

  /// Adds a copy of an entry, if it lies within the bounds.
  ///
  /// - Throws: `memoryLimit`, `cancelled` and `timedOut`.
  func append(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ columns: Int, _ bounds: KeyRange?
  ) throws {
    try limits?.cancellation.check()
    let read = try ValueIndexEntry(key: key, value: value, columns: columns)
    guard bounds?.contains(read.key) ?? true else { return }
    let (key, value) = (arena.copy(TextSlice(key)).bytes, arena.copy(TextSlice(value)).bytes)
    entries.append(try ValueIndexEntry(key: key, value: value, columns: columns))
    limits?.budget.take(ValueIndexRun.entryBytes)
    try limits?.budget.check(.index)
  }

  func forEach(_ descending: Bool, _ body: (ValueIndexEntry) throws -> Bool) throws -> Bool {
    entries.sort { left, right in
      let order = compareBytes(left.key, right.key)
      return descending ? order > 0 : order < 0
    }
    for entry in entries {
      guard try body(entry) else { return false }
    }
    return true
  }
}

extension KeyRange.Edge {
  /// Whether the edge is longer than the part of a key that the engine orders by.
  var isCut: Bool {
    switch self {
    case .unbounded: false
    case .including(let values), .excluding(let values): values.count > OrderedKeyLimits.cutPrefixBytes
    }
  }

  /// The edge of a range of stored keys that contains everything in this range.
  var cut: KeyRange.Edge {
    switch self {
    case .including(let values) where isCut, .excluding(let values) where isCut:
      .including(Array(values.prefix(OrderedKeyLimits.cutPrefixBytes)))
    default: self
    }
  }
}

extension KeyRange {
  /// Whether a key lies in the range.
  func contains(_ key: UnsafeRawBufferPointer) -> Bool {
    func compare(_ bound: [UInt8]) -> Int { bound.withUnsafeBytes { compareBytes(key, $0) } }
    switch lower {
    case .unbounded: break
    case .inclusive(let bound): if compare(bound) < 0 { return false }
    case .exclusive(let bound): if compare(bound) <= 0 { return false }
    }
    switch upper {
    case .unbounded: return true
    case .inclusive(let bound): return compare(bound) <= 0
    case .exclusive(let bound): return compare(bound) < 0
    }
  }
}
