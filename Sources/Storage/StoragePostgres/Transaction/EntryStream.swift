import Bytes
import Storage
import StorageMemory

/// The entries of a range in one direction: pages of a server, merged with what a writer hasn't sent yet.
///
/// The first page is small, so that a search costs little. Later ones are larger, and each is asked for while the one before
/// it is used.
final class EntryStream {
  /// The number of entries of the first page.
  private static let firstPage = 32
  private static let maximumPage = 8_192
  /// The wanted size of a page, in bytes.
  private static let pageBytes = 1 << 20

  private enum Current {
    case nothing
    case row(Int)
    case record(MemoryRecord)
  }

  private unowned let transaction: PostgresTransaction
  private let number: Int
  private let isDescending: Bool
  private let hasValues: Bool
  /// What is left on the server: keys from `lower` to before `upper`.
  private var lower: [UInt8]
  private var upper: [UInt8]
  private var page: Answer?
  /// The next row of the page.
  private var row = 0
  private var limit = EntryStream.firstPage
  /// Whether the server has nothing behind this page.
  private var isLastPage: Bool
  private var ahead: PageRequest?
  /// The entries of the writer, and where in them the stream is: the next one, or behind it when descending.
  private let own: SortedRecords
  private var place: SortedRecords.Position
  private var end: SortedRecords.Position
  private var current = Current.nothing

  init(
    _ transaction: PostgresTransaction, _ number: Int, from lower: [UInt8], to upper: [UInt8],
    isDescending: Bool, hasValues: Bool
  ) {
    self.transaction = transaction
    self.number = number
    self.isDescending = isDescending
    self.hasValues = hasValues
    self.lower = lower
    self.upper = upper
    isLastPage = !EntryKey.isLess(lower, upper)
    own = transaction.unsent(number)
    let bounds =
      isLastPage
      ? (own.end, own.end)
      : own.positions(in: KeyRange(lower: .inclusive(lower), upper: .exclusive(upper)))
    (place, end) = isDescending ? (bounds.1, bounds.0) : (bounds.0, bounds.1)
  }

  // MARK: Moving

  /// Moves to the next entry. Returns false if there is none.
  func next() throws -> Bool {
    // The usual case first: nothing but the rows of a page.
    if place == end {
      guard try fill() else { return stop() }
      current = .row(row)
      row += 1
      return true
    }
    return try nextMerged()
  }

  private func stop() -> Bool {
    current = .nothing
    return false
  }

  private func nextMerged() throws -> Bool {
    while true {
      let isRow = try fill()
      guard let record = ownRecord else {
        guard isRow else { return stop() }
        current = .row(row)
        row += 1
        return true
      }
      var order = -1
      if isRow, let page {
        order = record.compare(to: page.bytes(row, 0).bytes)
        if isDescending { order = -order }
      }
      if order > 0 {
        current = .row(row)
        row += 1
        return true
      }
      // The writer's entry is in the place of the server's.
      if order == 0 { row += 1 }
      passOwn()
      if UnsentMark.isPut(record.mark) {
        current = .record(record)
        return true
      }
    }
  }

  private var ownRecord: MemoryRecord? {
    guard place != end else { return nil }
    if !isDescending { return own[place] }
    return own.before(place).map { own[$0] }
  }

  private func passOwn() {
    if isDescending { place = own.before(place) ?? end } else { place = own.after(place) }
  }

  /// Makes sure that there is a row, if the server has one. Returns whether there is one.
  private func fill() throws -> Bool {
    while true {
      if let page, row < page.count { return true }
      guard !isLastPage else { return false }
      try nextPage()
    }
  }

  private func nextPage() throws {
    let (answer, asked) = try transaction.locked { connection -> (Answer, Int) in
      if let ahead {
        self.ahead = nil
        try connection.settle()
        if let answer = ahead.answer { return (answer, ahead.limit) }
        throw PostgresError(nil, "the connection to the server was lost in a scan", isLost: true)
      }
      return (try withParameters { try connection.run(statement, $0) }, limit)
    }
    page = answer
    row = 0
    isLastPage = answer.count < asked
    guard !isLastPage else { return }
    let last = [UInt8](answer.bytes(answer.count - 1, 0))
    if isDescending { upper = last } else { lower = last + [0] }
    let isFirst = limit == Self.firstPage
    limit = min(Self.maximumPage, limit * 4, max(Self.firstPage, Self.pageBytes / meanBytes(answer)))
    guard !isFirst else { return }
    let request = PageRequest(limit: limit)
    try transaction.locked { connection in
      try withParameters { try connection.sendAhead(statement, $0, request) }
    }
    ahead = request
  }

  /// The mean size of some entries of a page, in bytes.
  private func meanBytes(_ answer: Answer) -> Int {
    let sample = min(answer.count, 64)
    var bytes = 0
    for index in 0..<sample {
      bytes += 16 + answer.bytes(index, 0).count + (hasValues ? answer.bytes(index, 1).count : 0)
    }
    return max(1, bytes / max(1, sample))
  }

  private var statement: Statement {
    switch (hasValues, isDescending) {
    case (true, false): .ascending
    case (true, true): .descending
    case (false, false): .ascendingKeys
    case (false, true): .descendingKeys
    }
  }

  private func withParameters<Result>(_ body: ([Parameter]) throws -> Result) throws -> Result {
    try lower.withUnsafeBytes { lower in
      try upper.withUnsafeBytes { upper in
        try body([.integer(number), .bytes(lower), .bytes(upper), .integer(limit)])
      }
    }
  }

  /// Passes the entries before `key`, if `key` is within the page. Returns false, and does nothing, if it isn't. Only for an
  /// ascending stream without entries of a writer.
  func skip(to key: RawSpan) -> Bool {
    guard place == end, !isDescending, let page, page.count > 0, case .row(let start) = current else {
      return false
    }
    guard page.bytes(start, 0).bytes.compare(key) <= 0, page.bytes(page.count - 1, 0).bytes.compare(key) >= 0
    else { return false }
    var (low, high) = (start, page.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if page.bytes(middle, 0).bytes.compare(key) < 0 { low = middle + 1 } else { high = middle }
    }
    current = .row(low)
    row = low + 1
    return true
  }

  /// Passes the next rows of the page to `body`, without moving. A large value isn't there, and empty.
  func lookAhead(
    _ most: Int, _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
  ) {
    guard let page, row < page.count else { return }
    withExtendedLifetime(page) {
      for index in row..<min(page.count, row + most) { body(page.bytes(index, 0), page.bytes(index, 1)) }
    }
  }

  // MARK: Lending

  /// A copy of the current key.
  func copiedKey() -> [UInt8] {
    switch current {
    case .nothing: []
    case .row(let row): page.map { [UInt8]($0.bytes(row, 0)) } ?? []
    case .record(let record): record.withBytes { key, _ in [UInt8](copying: key) }
    }
  }

  /// Lends the current entry. It stays as it is while `body` runs, even if the stream moves.
  @inline(__always)
  func lend<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) throws -> Result {
    switch current {
    case .nothing:
      throw StorageError(.notOnEntry, "the cursor is on no entry; place it with seek, first or last")
    case .record(let record):
      return try record.withBytes { try body($0, hasValues ? $1 : $1.extracting(0..<0)) }
    case .row(let row):
      guard let page else { throw StorageError(.notOnEntry, "the cursor is on no entry") }
      return try withExtendedLifetime(page) {
        let key = page.bytes(row, 0)
        guard hasValues else {
          return try body(key.bytes, UnsafeRawBufferPointer(start: nil, count: 0).bytes)
        }
        if !page.isNull(row, 1) { return try body(key.bytes, page.bytes(row, 1).bytes) }
        // A large value, which a page doesn't have.
        let answer = try transaction.locked { try $0.run(.get, [.integer(number), .bytes(key)]) }
        guard answer.count == 1 else {
          throw StorageError(.damaged, "an entry of a scan has no value", path: transaction.engine.location)
        }
        return try withExtendedLifetime(answer) { try body(key.bytes, answer.bytes(0, 0).bytes) }
      }
    }
  }
}

/// Bounds of ranges as the statements take them: from a key to before another one.
enum EntryKey {
  /// It is greater than every key: it is longer than the longest one, and has the greatest bytes.
  static let end = [UInt8](repeating: 0xFF, count: StorageLimits.maximumKeyBytes + 1)

  static func bounds(_ range: KeyRange) -> (lower: [UInt8], upper: [UInt8]) {
    let lower: [UInt8] =
      switch range.lower {
      case .unbounded: []
      case .inclusive(let key): key
      case .exclusive(let key): key + [0]
      }
    let upper: [UInt8] =
      switch range.upper {
      case .unbounded: end
      case .inclusive(let key): key + [0]
      case .exclusive(let key): key
      }
    return (lower, upper)
  }

  static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.span.bytes.compare(right.span.bytes) < 0
  }
}

/// What a writer knows of an entry that it hasn't sent yet.
enum UnsentMark {
  /// A put. Whether the server has the key isn't known.
  static let put: UInt8 = 0
  /// A put of a key that the server doesn't have.
  static let new: UInt8 = 1
  /// A put of a key that the server has.
  static let changed: UInt8 = 2
  /// A removal. Whether the server has the key isn't known.
  static let removed: UInt8 = 3
  /// A removal of a key that the server has.
  static let gone: UInt8 = 4

  static func isPut(_ mark: UInt8) -> Bool { mark <= changed }
}
