import Fleece

/// Rows in a temporary file that are read by their numbers. Pages that were read last are kept. One thread uses it.
final class PagedRows {
  private final class Page {
    let arena: EvaluationArena
    var rows: [UnsafeMutablePointer<QueryValue>] = []

    init(_ budget: QueryMemoryBudget) { arena = EvaluationArena(capacity: 1024, budget) }
  }

  /// So many rows are read at once.
  static let rowsPerPage = 32
  /// So many pages are kept at least.
  static let leastPages = 8
  private let file: RowFile
  private let keeping: RowKeeping
  /// Where the first row of each page begins.
  private var places: [Int] = []
  private(set) var count = 0
  /// The pages that were read, by their numbers.
  private var pages: [Int: Page] = [:]
  /// Their numbers in the order in which they were read.
  private var order: [Int] = []
  private var pageBytes = 0
  private let mostPageBytes: Int
  private var lastPage: (number: Int, page: Page)?
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
    keeping.budget.giveBack(places.count * MemoryLayout<Int>.stride)
  }

  /// Appends a row. No row may be read before the last one is there.
  func append(_ values: UnsafePointer<QueryValue>) throws {
    if count % Self.rowsPerPage == 0 {
      places.append(file.end)
      keeping.budget.take(MemoryLayout<Int>.stride)
    }
    try file.append(values, keeping.sharedKeys)
    count += 1
  }

  /// A row by its number, from 0. It is valid until `leastPages` other rows were read.
  func row(_ number: Int) throws -> UnsafePointer<QueryValue> {
    let page = try page(number / Self.rowsPerPage)
    return UnsafePointer(page.rows[number % Self.rowsPerPage])
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

  private func page(_ number: Int) throws -> Page {
    if let lastPage, lastPage.number == number { return lastPage.page }
    let page = try pages[number] ?? read(number)
    lastPage = (number, page)
    return page
  }

  private func read(_ number: Int) throws -> Page {
    try keeping.cancellation.check()
    let page = Page(keeping.budget)
    let end = number + 1 < places.count ? places[number + 1] : file.end
    let reader = file.rows(places[number]..<end)
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
