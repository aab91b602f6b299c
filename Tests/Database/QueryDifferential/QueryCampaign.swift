import Query
import TestSupport

/// Random queries over random databases, round after round. Each round's seed makes it again.
package struct QueryCampaign {
  /// What came of it.
  package struct Summary: Sendable {
    /// How many queries were asked.
    package var queries = 0
    /// How many of them gave rows.
    package var withRows = 0
    /// How many the naive evaluator answered.
    package var answered = 0
    /// How many have no one answer.
    package var open = 0
    /// How many were refused by the language.
    package var refused = 0
    /// Why the last of them was.
    package var refusal = ""
    /// The texts of failing cases.
    package var failures: [String] = []
    /// How many statements changed documents.
    package var changes = 0
  }

  /// On which engines.
  package var engines: [EngineName]
  /// How many queries are asked of one database before and after its documents change.
  package var queriesPerRound = 60
  /// Each how many queries one is watched.
  package var liveStride = 12
  /// After so many failures it ends.
  package var failureLimit = 5
  /// Called with the text of each failing case, made small.
  package var report: (String) -> Void = { _ in }

  /// A campaign on some engines.
  package init(engines: [EngineName]) { self.engines = engines }

  /// Runs so many rounds; the first has this seed, the next the next.
  package func run(seed: UInt64, rounds: Int = .max) throws -> Summary {
    var summary = Summary()
    var round = 0
    while round < rounds, summary.failures.count < failureLimit {
      try self.round(seed: seed &+ UInt64(round), &summary)
      round += 1
    }
    return summary
  }

  /// One database, and queries of it.
  func round(seed: UInt64, _ summary: inout Summary) throws {
    var generator = CaseGenerator(seed: seed)
    let database = try CaseDatabase(engines, generator.steps())
    defer { database.close() }
    var watched: [(query: SelectStatement, parameters: JSONObject)] = []
    for half in 0..<2 {
      for number in 0..<(queriesPerRound / 2) {
        guard summary.failures.count < failureLimit else { return }
        let (text, parameters) = generator.query()
        let query: SelectStatement
        do { query = try SelectStatement(parsing: text) } catch {
          summary.refused += 1
          summary.refusal = "\(error)\n\(text)"
          continue
        }
        summary.queries += 1
        // All plans, and the ways of taking rows in turn.
        let others: [RowWay] = [.forEach, .spilled, .kept, .decoded, .spilled, .json, .executed]
        var ways: [RowWay] = [.plain, .run, others[number % others.count]]
        if number % liveStride == 0 { ways.append(.live) }
        let (outcome, rows) = try database.check(query, parameters, ways: ways)
        if rows > 0 { summary.withRows += 1 }
        switch outcome {
        case .alike: break
        case .open: summary.open += 1
        case .same:
          summary.answered += 1
          if half == 0, number % liveStride == 0 { watched.append((query, parameters)) }
        case .refused(let message):
          summary.refused += 1
          summary.refusal = message
        case .failed(let failure):
          if KnownFailures.reason(query) != nil { continue }
          add(
            DifferentialCase(steps: database.steps, query: query, parameters: parameters), failure, seed,
            &summary)
        }
      }
      guard half == 0 else { break }
      let before = database.steps
      if let failed = try batch(&generator, database, &summary) {
        return add(failed.found, failed.failure, seed, &summary)
      }
      let changes = generator.changesByStatements()
      if let (number, failure) = try database.checkLive(watched, changes) {
        var found = DifferentialCase(
          steps: before, query: watched[number].query, parameters: watched[number].parameters)
        found.liveSteps = changes
        if KnownFailures.reason(found.query) == nil { add(found, failure, seed, &summary) }
        if database.steps.count == before.count { try database.apply(changes) }
      }
      summary.changes += database.changeCount
      if let failure = database.changeFailure {
        let found = DifferentialCase(steps: before + changes, query: try SelectStatement(parsing: "SELECT 1"))
        return add(found, failure, seed, &summary)
      }
    }
  }

  /// Some queries in a batch that has changed documents, and is undone.
  private func batch(_ generator: inout CaseGenerator, _ database: CaseDatabase, _ summary: inout Summary)
    throws
    -> (found: DifferentialCase, failure: DifferentialFailure)?
  {
    guard generator.chance(50) else { return nil }
    let ids = generator.ids
    let changes = generator.changes()
    // These are of documents that come to nothing.
    generator.ids = ids
    let before = database.steps
    var failed: (found: DifferentialCase, failure: DifferentialFailure)?
    try database.inUndoneBatch(changes) {
      for _ in 0..<max(1, queriesPerRound / 10) {
        let (text, parameters) = generator.query()
        guard failed == nil, let query = try? SelectStatement(parsing: text) else { continue }
        summary.queries += 1
        let (outcome, rows) = try database.check(query, parameters, ways: [.plain, .run, .forEach])
        if rows > 0 { summary.withRows += 1 }
        guard case .failed(let failure) = outcome, KnownFailures.reason(query) == nil else { continue }
        var found = DifferentialCase(steps: before, query: query, parameters: parameters)
        found.batchSteps = changes
        failed = (found, failure)
      }
    }
    return failed
  }

  private func add(
    _ found: DifferentialCase, _ failure: DifferentialFailure, _ seed: UInt64, _ summary: inout Summary
  ) {
    var shrinker = CaseShrinker(found, failure, engines)
    shrinker.shrink()
    let text = """
      # seed \(seed): \(shrinker.failure.engine), \(shrinker.failure.way)
      \(shrinker.failure.message.split(separator: "\n").map { "# \($0)" }.joined(separator: "\n"))
      \(shrinker.best.text)
      """
    summary.failures.append(text)
    report(text)
  }
}
