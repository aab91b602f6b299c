import Documents
import Fleece
import Storage

/// One run of a query on one snapshot, by one thread.
///
/// Rows are pushed. Each step passes its rows to the next step, and the last one to the sink. Each returns
/// whether it wants more rows. Nothing is allocated for a row until a sink keeps it.
///
/// A step's row points at bytes that the storage lends to a closure. The following steps run inside that
/// closure, so everything that a row points at is valid until the step leaves the row. Values computed for a
/// row are in an arena scope that ends with the row. Sinks copy the values that they keep
/// (`EvaluationArena.copy`). Nowhere else does a value outlive its row.
final class QueryExecution {
  /// What a step did in a run.
  struct StepCounts: BitwiseCopyable {
    /// The number of rows, or entries of an index, that were read.
    var examined = 0
    /// The number of rows that were passed on.
    var passed = 0
    /// The time in this step and all following ones, in nanoseconds. 0 unless the run is timed.
    var nanoseconds: UInt64 = 0
  }

  let compiled: CompiledQuery
  let context: EvaluationContext
  /// Owns what the run uses and another one can use again.
  let resources: RunResources
  let snapshot: DocumentSnapshot
  let sharedKeys: SharedKeys
  let counts: UnsafeMutablePointer<StepCounts>
  private let steps: [CompiledStep]
  private let lookups: UnsafeMutablePointer<RunResources.Lookup?>
  // One thread runs the query.
  @exclusivity(unchecked) private(set) var sink: RowSink
  let cancellation: QueryCancellation
  private let isTimed: Bool
  var hashTables: [Int: HashJoinTable] = [:]
  /// The matched rows of RIGHT and FULL joins, by step.
  var unmatched: [Int: Matches] = [:]
  let documents: DocumentReader
  /// The readers of the indexes so far. A query has few.
  var readers: [(keyspace: Keyspace, reader: ValueIndexReader)] = []

  /// `resources` are those of the query. `RunResources.begin` was called, and no other execution uses them
  /// meanwhile.
  init(
    _ compiled: CompiledQuery, _ resources: RunResources, _ snapshot: DocumentSnapshot,
    _ sharedKeys: SharedKeys, _ sink: RowSink, _ cancellation: QueryCancellation, isTimed: Bool = false
  ) throws {
    documents = try snapshot.reader(sharedKeys)
    self.compiled = compiled
    self.resources = resources
    context = resources.context
    self.snapshot = snapshot
    self.sharedKeys = sharedKeys
    self.sink = sink
    self.cancellation = cancellation
    self.isTimed = isTimed
    steps = compiled.steps
    counts = resources.counts
    lookups = resources.lookups
  }

  /// Prepares another run, with another sink. Hash tables stay if no run can change them.
  func begin(_ sink: RowSink) {
    self.sink = sink
    unmatched = [:]
    guard !hashTables.isEmpty else { return }
    for number in hashTables.keys {
      if case .hash(let join) = steps[number].access, join.isSameForAllRuns { continue }
      hashTables[number] = nil
    }
  }

  /// Runs the query to the end, or until the sink wants no more rows.
  func run() throws {
    try cancellation.check()
    if let filter = compiled.constantFilter, filter.truth(context) != .true {
      try context.check()
    } else if case .documentCount? = compiled.plan.grouping {
      try sink.countRows(try snapshot.documentCount)
    } else {
      _ = try advance(0) && rowsWithoutMatch()
    }
    try context.check()
    try sink.finish()
  }

  /// Produces the rows of a step for the current rows of the previous steps. False when no more rows are
  /// wanted.
  func advance(_ number: Int) throws -> Bool {
    guard number < steps.count else { return try sink.row() }
    if let lookup = lookups[number], !isTimed { return try lookUp(lookup, number) }
    let step = steps[number]
    if isTimed {
      let begin = ContinuousClock.now
      defer { counts[number].nanoseconds += begin.duration(to: .now).wholeNanoseconds }
      return try rows(of: step, number)
    }
    return try rows(of: step, number)
  }

  private func rows(of step: CompiledStep, _ number: Int) throws -> Bool {
    if step.kind.keepsUnmatched { return try rows(keepingUnmatched: step, number) }
    guard step.kind == .leftOuter else {
      if number + 1 == steps.count, !isTimed {
        let sink = sink
        return try rows(of: step, number, step.access) { try sink.row() }
      }
      return try rows(of: step, number, step.access) { try self.advance(number + 1) }
    }
    var hasMatch = false
    let outerFilter = step.outerFilter
    let goesOn = try rows(of: step, number, step.access) {
      hasMatch = true
      if let outerFilter, outerFilter.truth(self.context) != .true { return true }
      return try self.advance(number + 1)
    }
    return try hasMatch || !goesOn ? goesOn : rowWithoutMatch(of: step, number)
  }

  /// Passes on the row of an outer join whose left side has no match.
  func rowWithoutMatch(of step: CompiledStep, _ number: Int) throws -> Bool {
    let outerFilter = step.outerFilter
    context.rows[step.source] = SourceRow()
    return try context.arena.scope {
      if case .index(let access) = step.access { access.readMissing(context) }
      if let outerFilter, outerFilter.truth(context) != .true {
        try context.check()
        return true
      }
      counts[number].passed += 1
      return try advance(number + 1)
    }
  }

  // MARK: Access paths

  func rows(
    of step: CompiledStep, _ number: Int, _ access: CompiledAccess, _ next: () throws -> Bool
  ) throws -> Bool {
    switch access {
    case .documents(let order): return try scan(step, number, .all, order, next)
    case .identifiers(let lists, let direction): return try identifiers(step, number, lists, direction, next)
    case .index(let access): return try index(step, number, access, next)
    case .union(let paths): return try union(step, number, paths, next)
    case .hash(let join): return try hash(step, number, join, next)
    case .unnest(let array): return try unnest(step, number, array, next)
    case .rows(let node):
      let needsValues = compiled.program.readSources.contains(step.source)
      return try node.forEachRow(context, needsValues: needsValues) { try item($0, step, number, next) }
    case .items(let items): return try self.items(step, number, items, next)
    case .value(let value): return try item(value.evaluate(context), step, number, next)
    case .fullText(let access): return try fullText(step, number, access, next)
    }
  }

  /// Tests the current row of a step with a filter, and passes it on when the filter is true. False when no
  /// more rows are wanted.
  @inline(__always)
  func offer(
    _ step: CompiledStep, _ filter: CompiledExpression?, _ count: UnsafeMutablePointer<StepCounts>,
    _ next: () throws -> Bool
  ) throws -> Bool {
    count.pointee.examined &+= 1
    if let filter, filter.truth(context) != .true {
      try context.check()
      try cancellation.check()
      return true
    }
    count.pointee.passed &+= 1
    try cancellation.check()
    let goesOn = try next()
    try context.check()
    return goesOn
  }

  /// Throws after a row was refused, if the cause was an error or a cancellation.
  @inline(__always)
  func checkRefused() throws {
    try context.check()
    try cancellation.check()
  }

  func checkCancelled() throws { try cancellation.check() }

  private func scan(
    _ step: CompiledStep, _ number: Int, _ range: KeyRange, _ order: ScanOrder, _ next: () throws -> Bool
  ) throws -> Bool {
    var goesOn = true
    // Local variables avoid retain and release for rows that are refused.
    let (context, cancellation) = (context, cancellation)
    let row = context.rows + step.source
    let filter = step.filter
    let count = counts + number
    let arena = context.arena
    defer { row.pointee = SourceRow() }
    if !step.needsRecord, !step.includesDeleted {
      try snapshot.forEachID(in: range, order: order) { id in
        row.pointee = SourceRow(id: id.withUnsafeBytes { $0 })
        return try arena.scope {
          goesOn = try offer(step, filter, count, next)
          return goesOn
        }
      }
      return goesOn
    }
    return try arena.scope {
      let tests = filter?.scanTests(step.source, context) ?? []
      let test = ScanTests(tests, arena)
      // A comparison with a text isn't evaluated again when its test has passed.
      let isDecided = filter is PathIsTextNode && tests.count == 1 && tests[0].text != nil
      let undecided = isDecided ? nil : filter
      let sharedKeys = sharedKeys
      try snapshot.forEachRecord(in: range, order: order) { id, record in
        let view = try DocumentView(idBytes: id, record: record, sharedKeys: sharedKeys)
        guard let value = view.body else { throw SourceRow.damaged(view) }
        let body = value.unsafeValue
        if let test, !test.mayPass(body, view.sharedKeyCount) {
          count.pointee.examined &+= 1
          try cancellation.check()
          return true
        }
        row.pointee = SourceRow(view, body)
        return try arena.scope {
          if let undecided, undecided.truth(context) != .true {
            count.pointee.examined &+= 1
            try context.check()
            try cancellation.check()
            return true
          }
          goesOn = try offer(step, nil, count, next)
          return goesOn
        }
      }
      guard goesOn, step.includesDeleted else { return goesOn }
      try snapshot.forEachTombstone { view in
        guard view.isWithin(range) else { return true }
        row.pointee = try SourceRow(view)
        return try arena.scope {
          goesOn = try offer(step, filter, count, next)
          return goesOn
        }
      }
      return goesOn
    }
  }

  private func identifiers(
    _ step: CompiledStep, _ number: Int, _ lists: [[CompiledCondition]], _ direction: ScanDirection,
    _ next: () throws -> Bool
  ) throws -> Bool {
    if lists.count == 1, case .equal(let expression)? = lists[0].first {
      let value = expression.evaluate(context)
      try context.check()
      guard case .string(let id) = value else { return true }
      return try document(step, number, id.bytes, next)
    }
    var ranges = try KeyRanges(context: context).ofIdentifiers(lists)
    if direction == .backward { ranges.reverse() }
    for range in ranges {
      if let id = range.singleIdentifier {
        guard try id.withUnsafeBytes({ try document(step, number, $0, next) }) else { return false }
        continue
      }
      guard try scan(step, number, range.keyRange, direction == .forward ? .ascending : .descending, next)
      else { return false }
    }
    return true
  }

  /// Passes on the document that a join looks up, if there is one.
  private func lookUp(_ lookup: RunResources.Lookup, _ number: Int) throws -> Bool {
    let value = lookup.id._withUnsafeGuaranteedRef { $0.evaluate(context) }
    try context.check()
    guard case .string(let id) = value else { return true }
    return try lookup.step._withUnsafeGuaranteedRef { step in
      let kept = lookup.memo._withUnsafeGuaranteedRef { $0.isUseful ? $0.record(of: id.bytes) : nil }
      guard let kept else {
        return try document(step, number, id.bytes, isKnownUnkept: true) { try advance(number + 1) }
      }
      guard !kept.isEmpty else { return true }
      let row = context.rows + step.source
      row.pointee = try SourceRow(
        DocumentView(idBytes: id.bytes.bytes, record: kept.bytes, sharedKeys: sharedKeys))
      defer { row.pointee = SourceRow() }
      return try context.arena.scope {
        try offer(step, step.filter, counts + number) { try advance(number + 1) }
      }
    }
  }

  /// Reads the document of an ID, and offers it while its bytes are lent. The bytes of the ID have to stay
  /// valid until this returns. `isKnownUnkept` tells that the memo has been asked.
  func document(
    _ step: CompiledStep, _ number: Int, _ id: UnsafeRawBufferPointer, isKnownUnkept: Bool = false,
    _ next: () throws -> Bool
  ) throws -> Bool {
    var goesOn = true
    let row = context.rows + step.source
    func take(_ view: DocumentView) throws {
      row.pointee = try SourceRow(view)
      defer { row.pointee = SourceRow() }
      goesOn = try context.arena.scope { try offer(step, step.filter, counts + number, next) }
    }
    // Only a join looks up a document more than once.
    let memo = number > 0 ? resources.memo(of: number) : nil
    guard let memo, memo.isUseful else {
      _ = try documents.read(id.bytes, includeDeleted: step.includesDeleted, take)
      return goesOn
    }
    if !isKnownUnkept, let record = memo.record(of: id) {
      guard !record.isEmpty else { return true }
      try take(DocumentView(idBytes: id.bytes, record: record.bytes, sharedKeys: sharedKeys))
      return goesOn
    }
    let isFound = try documents.read(id.bytes, includeDeleted: step.includesDeleted) { view in
      try take(view)
      view.bytes.withUnsafeBytes { memo.keep(id, $0) }
    }
    if !isFound { memo.keep(id, UnsafeRawBufferPointer(start: nil, count: 0)) }
    return goesOn
  }

  /// The documents whose IDs several paths find, each once.
  private func union(
    _ step: CompiledStep, _ number: Int, _ paths: [CompiledAccess], _ next: () throws -> Bool
  ) throws -> Bool {
    try forEachFound(paths, .union) { try document(step, number, $0, next) }
  }

  /// Calls `body` with the IDs that paths find, each once and in the order in which they were found, until it returns false. All are found
  /// before the first call. Returns the last result of `body`, or true.
  func forEachFound(
    _ paths: [CompiledAccess], _ clause: MemoryClause, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    let found = DistinctRows(compared: 1, width: 1, RowKeeping(context), clause)
    for path in paths {
      try forEachIdentifier(path) { id in
        try withUnsafePointer(to: QueryValue.string(TextSlice(id))) { _ = try found.insert($0) }
        return true
      }
    }
    return try found.forEach { row in
      guard case .string(let id) = row.pointee else { return true }
      return try body(id.bytes)
    }
  }

  /// Calls `body` with the IDs that a path finds. An ID may come more than once.
  func forEachIdentifier(
    _ access: CompiledAccess, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    switch access {
    case .identifiers(let lists, _):
      for range in try KeyRanges(context: context).ofIdentifiers(lists) {
        try snapshot.forEachID(in: range.keyRange) { id in
          try cancellation.check()
          return try id.withUnsafeBytes { try body($0) }
        }
      }
    case .index(let access): try forEachEntry(of: access) { try body($0) }
    case .documents:
      try snapshot.forEachID(order: .stored) { id in
        try cancellation.check()
        return try id.withUnsafeBytes { try body($0) }
      }
    case .union(let paths): for path in paths { try forEachIdentifier(path, body) }
    case .fullText(let access): try forEachMatch(of: access, body)
    case .hash, .unnest, .rows, .items, .value: break
    }
    try context.check()
  }

  private func unnest(
    _ step: CompiledStep, _ number: Int, _ array: CompiledExpression, _ next: () throws -> Bool
  ) throws -> Bool {
    let value = array.evaluate(context)
    guard value.type == .array else { return true }
    let row = context.rows + step.source
    let arena = context.arena
    var goesOn = true
    var failure: (any Error)?
    let (filter, count) = (step.filter, counts + number)
    row.pointee = SourceRow()
    defer { row.pointee = SourceRow() }
    value.forEachItem { item in
      row.pointee.value = item
      do { goesOn = try arena.scope { try offer(step, filter, count, next) } } catch {
        failure = error
        goesOn = false
      }
      return goesOn
    }
    if let failure { throw failure }
    return goesOn
  }
}

extension SourceRow {
  /// Makes a row of a document without copying it. The row is valid as long as the view. The caller has to
  /// remove it from the source before the closure ends that the view was lent to.
  @inline(__always)
  init(_ view: DocumentView) throws {
    guard let body = view.body else { throw SourceRow.damaged(view) }
    self.init(view, body.unsafeValue)
  }

  /// Makes a row of a document whose body has been found.
  @inline(__always)
  fileprivate init(_ view: DocumentView, _ body: UnsafeValue) {
    self.init(
      value: QueryValue(body), id: TextSlice(view.idBytes.withUnsafeBytes { $0 }),
      sequence: view.sequence, isDeleted: view.isDeleted, record: view.bytes.withUnsafeBytes { $0 })
  }

  @inline(never)
  fileprivate static func damaged(_ view: DocumentView) -> DocumentError {
    DocumentError(.damaged, "a stored body can't be read", documentID: view.id)
  }

  /// Makes a row of a document of which only the ID is read.
  @inline(__always)
  init(id: UnsafeRawBufferPointer) {
    self.init()
    self.id = TextSlice(id)
    sequence = 1
  }
}

extension DocumentView {
  fileprivate func isWithin(_ range: KeyRange) -> Bool {
    idBytes.withUnsafeBytes { range.contains($0) }
  }
}

extension ByteRange {
  /// The ID, when the range contains exactly one ID.
  fileprivate var singleIdentifier: [UInt8]? {
    guard let upper, upper.count == lower.count + 1, upper.last == 0, upper.dropLast() == lower[...] else {
      return nil
    }
    return lower
  }
}

extension Duration {
  var wholeNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(max(0, seconds)) * 1_000_000_000 + UInt64(max(0, attoseconds)) / 1_000_000_000
  }
}
