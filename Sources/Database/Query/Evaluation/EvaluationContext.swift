import Fleece

/// The environment in which the expressions of a program are evaluated: current rows, slots, parameters, and
/// memory for results. Use it from one thread at a time.
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
  /// The memory of computed values. A value in it is valid until its scope ends or the arena is reset, which
  /// happens at least once for each row.
  let arena: EvaluationArena
  /// The current row of each source.
  let rows: UnsafeMutablePointer<SourceRow>
  /// Values that other code computes: columns of covering indexes, aggregates, keys of groups.
  let slots: UnsafeMutablePointer<QueryValue>
  /// The values of the program's `parameterNames`.
  let parameters: UnsafeMutablePointer<QueryValue>
  let variables: UnsafeMutablePointer<QueryValue>
  /// The steps of the program's paths. They remember where the last body had them.
  let paths: UnsafeMutablePointer<UnsafeMutableBufferPointer<PathMove>>
  private let parameterArena = EvaluationArena(capacity: 256)
  private let pathArena: EvaluationArena
  let collators: [Collator]
  private var patterns: [Pattern?]
  /// The names of members in bodies.
  // It is read for each row, and set by the thread that reads. An exclusivity check would cost as much as the
  // rest of the read.
  @exclusivity(unchecked) private(set) var sharedKeys: SharedKeys = .empty
  private var hasPaths = false

  /// Reads the expiration time of a document by its ID, in milliseconds since 1970. Nil when it doesn't
  /// expire.
  @exclusivity(unchecked) var expiration: ((TextSlice) throws -> Int64?)?
  /// Reads the ID of a row's current revision.
  @exclusivity(unchecked) var revisionID: ((SourceRow) throws -> String?)?
  /// The first error. The expression that failed had the value missing. `check()` throws it.
  @exclusivity(unchecked) private(set) var failure: (any Error)?
  /// The memory budget for rows that the run keeps.
  @exclusivity(unchecked) private(set) var budget = QueryMemoryBudget(limit: .max)
  /// Stops the evaluation, also within a row.
  @exclusivity(unchecked) private(set) var cancellation = QueryCancellation()
  let limits: EvaluationLimits
  /// The size from which the arena asks for more memory, in bytes.
  private var arenaLimit: Int?
  /// Up to so many bytes, the values of one row don't count as memory that is shared.
  private static let freeRowBytes = 1 << 20
  /// The results of the query's MATCHes, by their numbers.
  @exclusivity(unchecked) var matches: [FullTextMatch] = []
  /// The inner queries of the run.
  @exclusivity(unchecked) var subqueries: SubqueryRuns?

  /// Creates a context with at least one row and one slot. All values are missing.
  ///
  /// - Throws: `collation` for a locale that ICU doesn't support.
  init(
    _ program: EvaluationProgram, sources: Int = 1, slots slotCount: Int = 0,
    limits: EvaluationLimits = .ofRows
  ) throws(QueryError) {
    self.program = program
    arena = EvaluationArena()
    self.limits = limits
    collators = try program.collations.map { collation throws(QueryError) in try Collator(collation) }
    rows = .allocate(sources, repeating: SourceRow())
    slots = .allocate(slotCount, repeating: .missing)
    parameters = .allocate(program.parameterNames.count, repeating: .missing)
    variables = .allocate(program.variableCount, repeating: .missing)
    paths = .allocate(
      program.paths.count, repeating: UnsafeMutableBufferPointer(start: nil, count: 0))
    pathArena = EvaluationArena(capacity: 64 + program.paths.count * 64)
    patterns = Array(repeating: nil, count: program.patternCount)
    arena.onWeight(beyond: limits.weight) { [unowned self] in
      fail(
        QueryError(
          .evaluation,
          "an array or object has more than \(self.limits.weight) values in it, those that it shares once for each time"
        ))
    }
  }

  deinit {
    rows.deallocate()
    slots.deallocate()
    parameters.deallocate()
    variables.deallocate()
    paths.deallocate()
  }

  /// Resolves the program's paths with the shared keys of a snapshot. Does nothing if they are already
  /// resolved with the same keys.
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
      paths[number] = UnsafeMutableBufferPointer(start: moves, count: steps.count)
    }
  }

  /// Sets the values of parameters. Values of unknown parameters are ignored.
  ///
  /// - Throws: `unsetParameter`, which names the first parameter without a value.
  func bind(_ values: [String: JSONValue]) throws(QueryError) {
    parameterArena.reset()
    for (number, name) in program.parameterNames.enumerated() where !InternalName.isCapture(name) {
      // The dictionary also finds a key that differs in Unicode normalization, so the bytes are compared too.
      guard let place = values.index(forKey: name.string), values[place].key.utf8.elementsEqual(name.bytes)
      else { throw QueryError(.unsetParameter, "the parameter $\(name) has no value; pass one to run") }
      parameters[number] = parameterArena.value(of: values[place].value)
    }
  }

  /// A property of a source's row.
  @inline(__always)
  func property(_ source: Int, _ path: Int) -> QueryValue { rows[source].value.follow(paths[path]) }

  /// Throws the first error since the last call, if there was one.
  @inline(__always)
  func check() throws {
    if _slowPath(failure != nil) { try throwFailure() }
  }

  private func throwFailure() throws {
    guard let failure else { return }
    self.failure = nil
    throw failure
  }

  /// Records an error. Returns the value with which the evaluation continues.
  @discardableResult
  func fail(_ error: any Error) -> QueryValue {
    if failure == nil { failure = error }
    return .missing
  }

  /// Sets the cancellation and the memory budget of a run. The values computed for one row may use the limit
  /// of the budget once more.
  func begin(_ cancellation: QueryCancellation, _ budget: QueryMemoryBudget) {
    self.cancellation = cancellation
    self.budget = budget
    let limit = budget.isShared ? min(budget.limit, Self.freeRowBytes) : budget.limit
    // A context is reused by many runs of a query, which have the same limit.
    guard arenaLimit != limit else { return }
    arenaLimit = limit
    arena.onGrowth(beyond: limit) { [unowned self] in
      if let error = self.budget.takeForRow(arena.allocatedBytes) { fail(error) }
    }
  }

  /// Gives back the memory of a run, if it is shared.
  func end() { if budget.isShared { budget = QueryMemoryBudget(limit: .max) } }

  /// Whether a loop within a row may continue. False after an error, or when the query has to stop. `check()`
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

  /// The order of values under one of the program's collations. Nil compares by bytes.
  @inline(__always)
  func order(_ collation: Int?) -> ValueOrder {
    ValueOrder(sharedKeys, collation.map { collators[$0] })
  }

  /// The compiled pattern at one place of the program. It is compiled again when the source text has changed.
  func pattern(_ number: Int, for source: TextSlice, _ make: (TextSlice) -> Pattern) -> Pattern {
    if let pattern = patterns[number], pattern.isMade(from: source) { return pattern }
    let pattern = make(source)
    patterns[number] = pattern
    return pattern
  }
}

/// The limits for a single function. Exceeding one is an error (`evaluation`).
struct EvaluationLimits {
  /// The maximum length of a text that the function makes, in bytes.
  let textBytes: Int
  /// The maximum number of items of an array that the function makes.
  let items: Int
  /// The maximum weight of an array or object (`ValueWeight`).
  let weight: UInt32
  /// The maximum time of a regular expression, in ICU's units of about one millisecond.
  let patternSteps: Int32

  /// The limits for rows: 16 MiB, about a million items, four million with those inside of them, about a second.
  static let ofRows = EvaluationLimits(
    textBytes: 1 << 24, items: 1 << 20, weight: 1 << 22, patternSteps: 1_000)
  /// The limits for constants that are computed while a query is prepared, which can't be cancelled. A
  /// constant that exceeds them is computed for each row instead.
  static let ofConstants = EvaluationLimits(
    textBytes: 1 << 16, items: 1 << 12, weight: 1 << 14, patternSteps: 10)
}

/// A compiled pattern, with the text it was compiled from.
class Pattern {
  private let source: [UInt8]

  init(source: TextSlice) { self.source = Array(source.utf8) }

  final func isMade(from text: TextSlice) -> Bool {
    source.withUnsafeBytes { TextSlice($0).equals(text) }
  }
}
