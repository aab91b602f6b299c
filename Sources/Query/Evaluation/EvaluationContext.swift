import Fleece

/// Where expressions of a program are evaluated: the rows at hand, slots, parameters, and memory for results. For one
/// thread at a time.
///
/// ```swift
/// let program = EvaluationProgram()
/// let condition = try program.compile(expression, in: DocumentScope())
/// let context = try EvaluationContext(program, sources: 1)
/// context.begin(sharedKeys)
/// try transaction.scan(docs) { key, value in
///   context.arena.reset()
///   context.rows[0].value = QueryValue(body)
///   if condition.truth(context) == .true { … }
///   try context.check()
/// }
/// ```
final class EvaluationContext {
  let program: EvaluationProgram
  /// What expressions compute, until it is reset: before each row, by whoever scans.
  let arena: EvaluationArena
  /// The row of each source.
  let rows: UnsafeMutablePointer<SourceRow>
  /// Values that others compute: columns of covering indexes, aggregates, keys of groups.
  let slots: UnsafeMutablePointer<QueryValue>
  /// Values of the program's `parameterNames`.
  let parameters: UnsafeMutablePointer<QueryValue>
  let variables: UnsafeMutablePointer<QueryValue>
  let paths: UnsafeMutablePointer<UnsafeBufferPointer<PathMove>>
  private let parameterArena = EvaluationArena(capacity: 256)
  private let pathArena: EvaluationArena
  let collators: [Collator]
  private var patterns: [Pattern?]
  private let counts: (rows: Int, slots: Int)
  /// The names of what lies in bodies.
  // Read for each row, and set by the one thread that reads: a check of exclusive access costs as much as the rest.
  @exclusivity(unchecked) private(set) var sharedKeys: SharedKeys = .empty
  private var hasPaths = false

  /// Reads when a document expires, in milliseconds since 1970; nil when never. Given its ID.
  var expiration: ((TextSlice) throws -> Int64?)?
  /// Reads the current revision's ID of a row.
  var revisionID: ((SourceRow) throws -> String?)?
  /// What went wrong first; the value of the expression was missing then. Look with `check()`.
  @exclusivity(unchecked) private(set) var failure: (any Error)?
  /// What the run keeps rows in.
  @exclusivity(unchecked) private(set) var budget = MemoryBudget(limit: .max)
  /// Ends evaluation, also inside of a row.
  @exclusivity(unchecked) private(set) var cancellation = QueryCancellation()
  let limits: EvaluationLimits
  /// The limit of memory that the arena watches.
  private var arenaLimit: Int?
  /// The time that NOW functions say, the same for a whole run: milliseconds since 1970.
  var now: Int64?
  /// What the MATCHes of the query find, by their numbers.
  var matches: [FullTextMatch] = []

  /// A context with rows for as many sources and as many slots, all missing.
  ///
  /// - Throws: `collation` for a locale that ICU doesn't take.
  init(
    _ program: EvaluationProgram, sources: Int = 1, slots slotCount: Int = 0,
    limits: EvaluationLimits = .ofRows
  ) throws(QueryError) {
    self.program = program
    arena = EvaluationArena()
    self.limits = limits
    counts = (max(sources, 1), max(slotCount, 1))
    var collators: [Collator] = []
    for collation in program.collations { collators.append(try Collator(collation)) }
    self.collators = collators
    rows = .allocate(capacity: counts.rows)
    rows.initialize(repeating: SourceRow(), count: counts.rows)
    slots = .allocate(capacity: counts.slots)
    slots.initialize(repeating: .missing, count: counts.slots)
    parameters = .allocate(capacity: max(program.parameterNames.count, 1))
    parameters.initialize(repeating: .missing, count: max(program.parameterNames.count, 1))
    variables = .allocate(capacity: max(program.variableCount, 1))
    variables.initialize(repeating: .missing, count: max(program.variableCount, 1))
    paths = .allocate(capacity: max(program.paths.count, 1))
    paths.initialize(
      repeating: UnsafeBufferPointer(start: nil, count: 0), count: max(program.paths.count, 1))
    pathArena = EvaluationArena(capacity: 64 + program.paths.count * 64)
    patterns = Array(repeating: nil, count: program.patternCount)
  }

  deinit {
    rows.deallocate()
    slots.deallocate()
    parameters.deallocate()
    variables.deallocate()
    paths.deallocate()
  }

  /// Resolves the program's paths to the shared keys of a snapshot; nothing happens when it has.
  func begin(_ sharedKeys: SharedKeys) {
    guard !hasPaths || sharedKeys !== self.sharedKeys else { return }
    self.sharedKeys = sharedKeys
    hasPaths = true
    pathArena.reset()
    for (number, steps) in program.paths.enumerated() {
      let moves = pathArena.allocate(steps.count, of: PathMove.self)
      for (index, step) in steps.enumerated() {
        switch step {
        case .index(let item): moves[index] = PathMove(index: item)
        case .name(let name):
          let text = pathArena.copy(name)
          moves[index] = PathMove(name: text.start, count: text.count, in: sharedKeys)
        }
      }
      paths[number] = UnsafeBufferPointer(start: moves, count: steps.count)
    }
  }

  /// Takes the values of parameters; those that aren't used are ignored.
  ///
  /// - Throws: `unsetParameter`, which names the first that is used and has no value.
  func bind(_ values: [String: JSONValue]) throws(QueryError) {
    parameterArena.reset()
    for (number, name) in program.parameterNames.enumerated() {
      // The dictionary takes names for one that differ in normalization.
      guard let place = values.index(forKey: name.string), values[place].key.utf8.elementsEqual(name.bytes)
      else { throw QueryError(.unsetParameter, "the parameter $\(name) has no value") }
      parameters[number] = parameterArena.value(of: values[place].value)
    }
  }

  /// Throws what went wrong since the last call.
  @inline(__always)
  func check() throws {
    if _slowPath(failure != nil) { try throwFailure() }
  }

  private func throwFailure() throws {
    guard let failure else { return }
    self.failure = nil
    throw failure
  }

  /// Notes what went wrong, and gives the value that evaluation goes on with.
  @discardableResult
  func fail(_ error: any Error) -> QueryValue {
    if failure == nil { failure = error }
    return .missing
  }

  /// What ends evaluation from now on, and the memory of the run. What is computed for one row may take as much, too.
  func begin(_ cancellation: QueryCancellation, _ budget: MemoryBudget) {
    self.cancellation = cancellation
    self.budget = budget
    let limit = budget.limit
    // Run after run of a query uses the context, with one limit.
    guard arenaLimit != limit else { return }
    arenaLimit = limit
    arena.onGrowth(beyond: limit) { [unowned self] in fail(MemoryClause.row.error(limit)) }
  }

  /// Whether a loop inside of a row may go on: false once something went wrong or the query is to end, which `check()`
  /// then throws.
  @inline(__always)
  var goesOn: Bool {
    if _fastPath(failure == nil && !cancellation.isCancelled) { return true }
    return end()
  }

  @inline(never)
  private func end() -> Bool {
    if cancellation.isCancelled { fail(cancellation.error) }
    return false
  }

  /// The order of values under one of the program's collations, nil for bytes.
  @inline(__always)
  func order(_ collation: Int?) -> ValueOrder {
    ValueOrder(sharedKeys, collation.map { collators[$0] })
  }

  /// A pattern that was compiled from a value in one place of the program; it is compiled again when the value is
  /// another.
  func pattern(_ number: Int, for source: TextSlice, _ make: (TextSlice) -> Pattern) -> Pattern {
    if let pattern = patterns[number], pattern.isMade(from: source) { return pattern }
    let pattern = make(source)
    patterns[number] = pattern
    return pattern
  }
}

/// What one function may take. More is a mistake (`evaluation`).
struct EvaluationLimits {
  /// The longest text it makes, in bytes.
  let textBytes: Int
  /// The longest array it makes.
  let items: Int
  /// How much backtracking a regular expression may take, in ICU's units of about a millisecond.
  let patternSteps: Int32

  /// For rows: 16 MiB, a million items, a second.
  static let ofRows = EvaluationLimits(textBytes: 1 << 24, items: 1 << 20, patternSteps: 1_000)
  /// For constants that are computed when a query is prepared, which nobody can cancel: what takes more is left for the
  /// rows to compute.
  static let ofConstants = EvaluationLimits(textBytes: 1 << 16, items: 1 << 12, patternSteps: 10)
}

/// What is kept of a pattern's compilation.
class Pattern {
  private let source: [UInt8]

  init(source: TextSlice) { self.source = Array(source.utf8) }

  final func isMade(from text: TextSlice) -> Bool {
    source.withUnsafeBytes { TextSlice($0).equals(text) }
  }
}
