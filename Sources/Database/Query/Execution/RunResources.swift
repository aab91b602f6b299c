import Storage

/// What the runs of a compiled query use one after the other: the evaluation context, the counts of the steps,
/// the memos of lookups, and the rows of DISTINCT. To make and to free it took a third of a run of few rows.
///
/// One run at a time has it. After a run with an error it isn't used again. Between two runs it holds no
/// snapshot and no transaction. The only data of documents in it are in the memos, which compare the versions
/// of snapshots.
final class RunResources {
  /// A step that looks up one document for each row. Nothing is retained for a row: the compiled query has the
  /// step, and `memos` the memo.
  struct Lookup: BitwiseCopyable {
    let step: Unmanaged<CompiledStep>
    let id: Unmanaged<CompiledExpression>
    let memo: Unmanaged<LookupMemo>
  }

  let context: EvaluationContext
  /// The counts of each step.
  let counts: UnsafeMutablePointer<QueryExecution.StepCounts>
  /// For each step, how it looks up documents. Nil for other steps.
  let lookups: UnsafeMutablePointer<Lookup?>
  /// Room for the values of a result row.
  let values: UnsafeMutablePointer<QueryValue>
  private let compiled: CompiledQuery
  /// The memos of the steps that have looked up a document.
  @exclusivity(unchecked) private var memos: [LookupMemo?]
  private var distinct: DistinctRows?
  /// The version of the snapshot of the run.
  private var version: SnapshotVersion?

  /// - Throws: `collation` for a locale that ICU doesn't support.
  init(_ compiled: CompiledQuery) throws(QueryError) {
    self.compiled = compiled
    context = try EvaluationContext(
      compiled.program, sources: compiled.sourceCount, slots: compiled.slotCount)
    let steps = compiled.steps
    counts = .allocate(steps.count, repeating: QueryExecution.StepCounts())
    lookups = .allocate(steps.count, repeating: nil)
    values = .allocate(compiled.columns.count, repeating: .missing)
    memos = Array(repeating: nil, count: steps.count)
  }

  deinit {
    counts.deallocate()
    lookups.deallocate()
    values.deallocate()
  }

  /// Begins a run on a snapshot with that version. The context has the run's budget.
  func begin(_ version: SnapshotVersion?) {
    self.version = version
    for (number, step) in compiled.steps.enumerated() {
      counts[number] = QueryExecution.StepCounts()
      if let memo = memos[number] {
        memo.begin(version)
      } else if number > 0, let id = step.singleID {
        lookups[number] = Lookup(
          step: .passUnretained(step), id: .passUnretained(id), memo: .passUnretained(memo(of: number)))
      }
    }
  }

  /// Ends a run that had no error.
  func end() {
    for memo in memos { memo?.end() }
    if distinct?.end() == false { distinct = nil }
    context.end()
  }

  /// The memo of a step.
  func memo(of number: Int) -> LookupMemo {
    if let known = memos[number] { return known }
    let made = LookupMemo(memoryLimit: context.budget.limit)
    made.begin(version)
    memos[number] = made
    return made
  }

  /// The rows of the run's DISTINCT, without any yet. Nil if the query isn't DISTINCT.
  func distinctRows() -> DistinctRows? {
    guard compiled.plan.query.isDistinct else { return nil }
    if let distinct, distinct.begin(RowKeeping(context)) { return distinct }
    distinct = DistinctRows(compiled, context)
    return distinct
  }
}
