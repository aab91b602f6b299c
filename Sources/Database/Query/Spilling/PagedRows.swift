import Fleece

/// Rows in a temporary file that are read by their numbers. Pages that were read last are kept. One thread uses it.
final class PagedRows {
  private final class Page {
    let arena: EvaluationArena
    /// The number of the first row.
    let first: Int
    var rows: [UnsafeMutablePointer<QueryValue>] = []

    init(_ first: Int, _ budget: QueryMemoryBudget) {
      self.first = first
      arena = EvaluationArena(capacity: 1024, budget)
    }
  }

  /// A page has at most so many rows, and none begins behind so many bytes of it.
  private static let mostRows = 32
  private static let mostBytes = 32 << 10
  /// So many pages are kept at least.
  static let leastPages = 8
  private let file: RowFile
  private let keeping: RowKeeping
  /// The first row of each page: its number, and where it begins in the file.
  private var begins: [(number: Int, place: Int)] = []
  private static let beginBytes = MemoryLayout<(Int, Int)>.stride
  private(set) var count = 0
  /// The pages that were read, by their numbers.
  private var pages: [Int: Page] = [:]
  /// Their numbers in the order in which they were read.
  private var order: [Int] = []
  private var pageBytes = 0
  private let mostPageBytes: Int
  private var lastPage: Page?
  /// The first error of the subscript.
  private(set) var failure: (any Error)?
  private let nothing: UnsafeMutablePointer<QueryValue>

  init(width: Int, _ keeping: RowKeeping) throws {
    self.keeping = keeping
    nothing = .allocate(width, repeating: .missing)
    file = try RowFile(width: width, keeping.files, keeping.budget)
    mostPageBytes = min(keeping.budget.limit / 16, 16 << 20)
  }

  deinit {
    nothing.deallocate()
    keeping.budget.giveBack(begins.count * Self.beginBytes)
  }

  /// Appends a row. No row may be read before the last one is there. Returns whether it is the first one of a page.
  @discardableResult
  func append(_ values: UnsafePointer<QueryValue>) throws -> Bool {
    let isFirst =
      begins.last.map { count - $0.number >= Self.mostRows || file.end - $0.place >= Self.mostBytes } ?? true
    if isFirst {
      begins.append((count, file.end))
      keeping.budget.take(Self.beginBytes)
    }
    try file.append(values, keeping.sharedKeys)
    count += 1
    return isFirst
  }

  /// The number of the first row of a page.
  func firstRow(ofPage page: Int) -> Int { begins[page].number }

  /// A row by its number, from 0. It is valid until `leastPages` other rows were read.
  func row(_ number: Int) throws -> UnsafePointer<QueryValue> {
    let page = try page(with: number)
    return UnsafePointer(page.rows[number - page.first])
  }

  /// The same for code that can't throw. After an error, which `check` throws, all values are missing.
  subscript(number: Int) -> UnsafePointer<QueryValue> {
    do {
      if failure == nil { return try row(number) }
    } catch { failure = error }
    return UnsafePointer(nothing)
  }

  /// Throws the first error of the subscript.
  func check() throws { if let failure { throw failure } }

  private func page(with number: Int) throws -> Page {
    if let lastPage, number >= lastPage.first, number - lastPage.first < lastPage.rows.count {
      return lastPage
    }
    var (low, high) = (0, begins.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if begins[middle].number <= number { low = middle } else { high = middle }
    }
    let page = try pages[low] ?? read(low)
    lastPage = page
    return page
  }

  private func read(_ number: Int) throws -> Page {
    try keeping.cancellation.check()
    let page = Page(begins[number].number, keeping.budget)
    let end = number + 1 < begins.count ? begins[number + 1].place : file.end
    let reader = file.rows(begins[number].place..<end)
    while let row = try reader.next() {
      page.rows.append(page.arena.copy(row, count: file.width, keeping.sharedKeys))
    }
    while order.count >= Self.leastPages, pageBytes + page.arena.allocatedBytes > mostPageBytes {
      if let old = pages.removeValue(forKey: order.removeFirst()) { pageBytes -= old.arena.allocatedBytes }
    }
    pages[number] = page
    order.append(number)
    pageBytes += page.arena.allocatedBytes
    return page
  }
}
