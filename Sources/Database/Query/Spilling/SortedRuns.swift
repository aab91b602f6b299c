import Fleece
import Storage

/// What a run of a query gives to those that keep its rows.
struct RowKeeping {
  let budget: QueryMemoryBudget
  let cancellation: QueryCancellation
  let sharedKeys: SharedKeys

  init(budget: QueryMemoryBudget, cancellation: QueryCancellation, sharedKeys: SharedKeys) {
    self.budget = budget
    self.cancellation = cancellation
    self.sharedKeys = sharedKeys
  }

  init(_ context: EvaluationContext) {
    budget = context.budget
    cancellation = context.cancellation
    sharedKeys = context.sharedKeys
  }

  init(_ environment: SubqueryRuns.Environment) {
    budget = environment.budget
    cancellation = environment.cancellation
    sharedKeys = environment.sharedKeys
  }

  /// The temporary files of the run. Only who was told to write (`QueryMemoryBudget.mustSpill`) asks for them.
  var files: TemporaryFiles {
    guard let files = budget.files else { preconditionFailure("a run without files can't write any") }
    return files
  }
}

/// The order of two rows: below, at or above 0.
typealias RowComparison = (UnsafePointer<QueryValue>, UnsafePointer<QueryValue>) -> Int

/// Rows in an order. One thread uses them.
class OrderedRows {
  /// The next row, or nil after the last. It is valid until the next call.
  func next() throws -> UnsafePointer<QueryValue>? { nil }

  /// Calls `body` with each row until it returns false. Returns the last result of `body`, or true.
  final func forEach(_ body: (UnsafePointer<QueryValue>) throws -> Bool) throws -> Bool {
    while let row = try next() {
      guard try body(row) else { return false }
    }
    return true
  }
}

/// Sorted parts ("runs") of rows in a temporary file, which are merged: an external sort (D. E. Knuth, "The Art of Computer Programming",
/// volume 3, section 5.4). Equal rows stay in the order in which they came.
final class SortedRuns {
  private let width: Int
  private let keeping: RowKeeping
  private let compare: RowComparison
  private var file: RowFile
  private var runs: [Range<Int>] = []

  init(width: Int, _ keeping: RowKeeping, _ compare: @escaping RowComparison) throws {
    self.width = width
    self.keeping = keeping
    self.compare = compare
    file = try RowFile(width: width, keeping.files, keeping.budget)
  }

  /// Adds a run: what `body` appends to the file, in order. All that came before are before it.
  func add(_ body: (RowFile) throws -> Void) throws {
    let start = file.end
    try body(file)
    if file.end > start { runs.append(start..<file.end) }
  }

  /// All rows in their order. No run may be added after.
  ///
  /// - Throws: `memoryLimit` or `memoryBusy` if memory doesn't hold two rows, `diskLimit`, or `StorageError` of the file.
  func merged() throws -> OrderedRows {
    let most = keeping.files.mergedAtOnce(readerBytes: file.readerBytes)
    while runs.count > most {
      // Neighbours are merged, so that equal rows stay in order. The old file goes as soon as its rows are in the new one.
      let merged = try RowFile(width: width, keeping.files, keeping.budget)
      var made: [Range<Int>] = []
      for first in stride(from: 0, to: runs.count, by: most) {
        let start = merged.end
        let rows = try MergedRuns(file, runs[first..<min(first + most, runs.count)], keeping, compare)
        while let row = try rows.next() { try merged.append(row, keeping.sharedKeys) }
        made.append(start..<merged.end)
      }
      (file, runs) = (merged, made)
    }
    return try MergedRuns(file, runs[...], keeping, compare)
  }
}

/// The rows of several runs in their order.
private final class MergedRuns: OrderedRows {
  private struct Head {
    let reader: RowReader
    var row: UnsafeMutablePointer<QueryValue>
    /// The number of the run, which decides between equal rows.
    let number: Int
  }

  private let compare: RowComparison
  private let cancellation: QueryCancellation
  /// A heap with the next row on top.
  private var heads: [Head] = []
  private var hasBegun = false

  init(
    _ file: RowFile, _ runs: ArraySlice<Range<Int>>, _ keeping: RowKeeping, _ compare: @escaping RowComparison
  ) throws {
    self.compare = compare
    cancellation = keeping.cancellation
    super.init()
    for (number, places) in runs.enumerated() {
      let reader = file.rows(places)
      if let row = try reader.next() { heads.append(Head(reader: reader, row: row, number: number)) }
    }
    for parent in (0..<(heads.count / 2)).reversed() { siftDown(parent) }
  }

  override func next() throws -> UnsafePointer<QueryValue>? {
    try cancellation.check()
    if hasBegun, !heads.isEmpty {
      if let row = try heads[0].reader.next() {
        heads[0].row = row
      } else {
        heads.swapAt(0, heads.count - 1)
        heads.removeLast()
      }
      siftDown(0)
    }
    hasBegun = true
    return heads.first.map { UnsafePointer($0.row) }
  }

  private func precedes(_ left: Int, _ right: Int) -> Bool {
    let order = compare(heads[left].row, heads[right].row)
    return order != 0 ? order < 0 : heads[left].number < heads[right].number
  }

  private func siftDown(_ start: Int) {
    var parent = start
    while true {
      var first = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heads.count && precedes(child, first) {
        first = child
      }
      guard first != parent else { return }
      heads.swapAt(parent, first)
      parent = first
    }
  }
}
