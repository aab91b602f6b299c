import Fleece

/// Receives the rows of a query, one at a time. The current row is in the evaluation context.
class RowSink {
  /// Takes the current row. False when no more rows are wanted.
  func row() throws -> Bool { false }

  /// Takes the number of rows, for queries that only count them.
  func countRows(_ count: Int) throws {}

  /// Called after the last row.
  func finish() throws {}

  /// How the sink's rows are made from slots alone. Nil when they can't be. The rows may then be stored without a call of `row`.
  var direct: DirectRows? { nil }
}

/// Result rows that are made from slots, and kept as they come.
struct DirectRows {
  let storage: ResultStorage
  /// The slot of each column, or `number`.
  var slots: [Int]
  /// Counts the rows whose numbers are columns.
  var stream: WindowStream?
  /// Stands for the number of the row.
  static let number = -1

  /// Whether each column is a slot of its own.
  var areDifferent: Bool {
    let given = slots.filter { $0 != Self.number }
    return Set(given).count == given.count
  }
}

/// Receives the values of one result row. They are valid until the call returns. It returns false when no
/// more rows are wanted.
typealias RowReceiver = (UnsafePointer<QueryValue>) throws -> Bool

/// Where result rows go.
enum RowOutput {
  /// Keeps all rows.
  case storage(ResultStorage)
  case receiver(RowReceiver)

  /// Takes a row. False when no more rows are wanted.
  @inline(__always)
  func take(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) throws -> Bool {
    switch self {
    case .storage(let storage):
      storage.append(values, sharedKeys)
      return true
    case .receiver(let receiver): return try receiver(values)
    }
  }
}

/// The number of rows to skip, and the number of rows wanted.
struct RowWindow {
  var offset: Int
  /// Nil means no limit.
  var limit: Int?

  /// Evaluates LIMIT and OFFSET. Negative numbers count as zero.
  ///
  /// - Throws: `evaluation` when one isn't a number.
  init(_ compiled: CompiledQuery, _ context: EvaluationContext) throws {
    func number(_ expression: CompiledExpression, _ clause: String) throws -> Int {
      let value = expression.evaluate(context)
      try context.check()
      guard let number = value.number else {
        throw QueryError(.evaluation, "\(clause) must be a number, not of type \(value.type.name)")
      }
      // There are never more rows than 64 bits can count.
      return value.integer.map { max(0, Int($0)) } ?? (number > 0 ? .max : 0)
    }
    offset = try compiled.offset.map { try number($0, "OFFSET") } ?? 0
    limit = try compiled.limit.map { try number($0, "LIMIT") }
  }

  /// The number of rows that have to be found. Nil means all rows.
  var needed: Int? {
    guard let limit else { return nil }
    let (sum, overflow) = limit.addingReportingOverflow(offset)
    return overflow ? nil : sum
  }
}

/// Computes result rows as rows arrive. It applies DISTINCT, OFFSET and LIMIT.
final class ProjectingSink: RowSink {
  private let columns: ExpressionList
  private let context: EvaluationContext
  private let output: RowOutput
  /// The storage that `output` holds, when rows are stored directly. Nil when they are inspected first.
  private let storage: Unmanaged<ResultStorage>?
  private let values: UnsafeMutablePointer<QueryValue>
  // One thread runs a query, so exclusivity checks aren't needed.
  @exclusivity(unchecked) private var skip: Int
  @exclusivity(unchecked) private var left: Int?
  private let distinct: DistinctRows?

  /// `values` has room for the columns, and `distinct` is the rows of a query that is DISTINCT. The sink owns
  /// neither.
  init(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ window: RowWindow,
    _ values: UnsafeMutablePointer<QueryValue>, _ distinct: DistinctRows?, _ output: RowOutput
  ) {
    columns = compiled.columnList
    self.context = context
    self.output = output
    if case .storage(let storage) = output, !compiled.plan.query.isDistinct {
      self.storage = .passUnretained(storage)
    } else {
      storage = nil
    }
    skip = window.offset
    left = window.limit
    self.values = values
    self.distinct = distinct
  }

  override func row() throws -> Bool {
    if left == 0 { return false }
    if distinct == nil, skip > 0 {
      skip -= 1
      return true
    }
    if let storage {
      storage._withUnsafeGuaranteedRef { $0.append(columns, context) }
      try context.check()
      return goesOn()
    }
    columns.evaluate(context, to: values)
    try context.check()
    if let distinct {
      guard try distinct.insert(values) else { return true }
      return try takeDistinct(values)
    }
    guard try output.take(values, context.sharedKeys) else { return false }
    return goesOn()
  }

  /// Takes a row of DISTINCT that is new.
  private func takeDistinct(_ values: UnsafePointer<QueryValue>) throws -> Bool {
    if skip > 0 {
      skip -= 1
      return true
    }
    guard try output.take(values, context.sharedKeys) else { return false }
    return goesOn()
  }

  override func finish() throws {
    guard let distinct, left != 0 else { return }
    _ = try distinct.forEachPostponed(takeDistinct)
  }

  /// Counts an emitted row. False when no more rows are wanted.
  @inline(__always)
  private func goesOn() -> Bool {
    guard let count = left else { return true }
    left = count - 1
    return count > 1
  }

  override var direct: DirectRows? {
    guard let storage, skip == 0, left == nil, let slots = columns.slots else { return nil }
    let rows = DirectRows(storage: storage.takeUnretainedValue(), slots: slots)
    return rows.areDifferent ? rows : nil
  }
}

extension DistinctRows {
  /// The rows of a query; nil if it isn't DISTINCT.
  ///
  /// - Parameter more: how many values are kept behind the columns of a row that is postponed.
  convenience init?(_ compiled: CompiledQuery, _ context: EvaluationContext, with more: Int = 0) {
    guard compiled.plan.query.isDistinct else { return nil }
    let columns = compiled.columns.count
    self.init(compared: columns, width: columns + more, RowKeeping(context), .distinct)
  }
}
