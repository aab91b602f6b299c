import BenchmarkKit
import Query
import Storage
import Suites
import Touchstone

/// Measures on a database of its own which indexes help queries, and finds those that no query uses.
struct IndexAdvice {
  /// How long runs of a query took, in seconds.
  struct Time {
    let median: Double
    let quartiles: ClosedRange<Double>
    let plan: [String]

    /// Whether all but a quarter of the runs of each are on its side, and the difference matters.
    func isClearlyBelow(_ other: Time) -> Bool {
      quartiles.upperBound < other.quartiles.lowerBound && median * IndexAdvice.leastGain <= other.median
    }
  }

  /// An index that was tried for a query.
  struct Trial {
    let definition: ValueIndexDefinition
    let time: Time
    /// How long it took to make the index.
    let making: Double
  }

  /// What was found for a query.
  struct Answer {
    let query: NamedQuery
    let rows: Int
    let now: Time
    /// The indexes that the plan used and that made it clearly faster, the fastest first. Of indexes that do as well, the one with
    /// the fewest expressions is first.
    var trials: [Trial] = []
  }

  /// A query with an index must be this many times as fast.
  static let leastGain = 1.2
  private static let leastRuns = 5
  private static let mostRuns = 1_000

  let answers: [Answer]
  /// The names of the database's indexes, which no new one may have.
  let names: Set<String>
  /// The existing indexes that none of the queries uses.
  let unused: [DatabaseIndex]
  /// The full-text indexes of the file of queries that the database doesn't have.
  let missing: [String]
  /// The number of indexes that were tried.
  let tried: Int

  /// Tries indexes on `database`, which is changed. Each query is run for about `seconds` with each of its candidates.
  init(
    _ queries: [NamedQuery], on database: Database, seconds: Double, progress: (String) -> Void,
    shouldStop: () -> Bool
  ) throws {
    let indexes = try database.indexes
    names = Set(indexes.map(\.name))
    // A query with MATCH needs its index to run at all.
    var missing: [String] = []
    for wanted in queries.flatMap(\.indexes) where !indexes.contains(where: { $0.name == wanted.name }) {
      guard case .fullText = wanted.definition, !missing.contains(wanted.name) else { continue }
      try wanted.make(in: database)
      missing.append(wanted.name)
    }
    self.missing = missing
    var answers: [Answer] = []
    func time(_ query: NamedQuery) throws -> (Time, rows: Int) {
      guard !shouldStop() else { throw Interrupted("nothing is reported") }
      do { return try Self.time(query, on: database, seconds: seconds) } catch let error as QueryError {
        throw UsageError("\(query.name): \(error)")
      }
    }
    for query in queries {
      progress("measuring \(query.name)")
      let (now, rows) = try time(query)
      answers.append(Answer(query: query, rows: rows, now: now))
    }
    unused = indexes.filter { index in !answers.contains { Self.uses(index, $0.now.plan) } }

    // Each candidate is made once, for all queries that it is a candidate of.
    var candidates: [(definition: ValueIndexDefinition, queries: [Int])] = []
    let existing = Set(indexes.compactMap(\.definition))
    for (number, query) in queries.enumerated() {
      let statement = try SelectStatement(parsing: query.text)
      let wanted = query.indexes.compactMap { index -> ValueIndexDefinition? in
        if case .value(let definition) = index.definition { definition } else { nil }
      }
      let advised = try Self.advised(query, in: database)
      for definition in (wanted + advised + IndexCandidates(statement).definitions).uniqued
      where !existing.contains(definition) {
        if let known = candidates.firstIndex(where: { $0.definition == definition }) {
          candidates[known].queries.append(number)
        } else {
          candidates.append((definition, [number]))
        }
      }
    }
    tried = candidates.count
    for (number, candidate) in candidates.enumerated() {
      progress("index \(number + 1) of \(candidates.count): \(candidate.definition.text)")
      let name = Self.freeName(indexes)
      let clock = ContinuousClock()
      let making = try clock.measure { try database.createIndex(name, candidate.definition) }
      for number in candidate.queries {
        let (found, rows) = try time(queries[number])
        guard rows == answers[number].rows else {
          throw DatabaseError(
            .damaged,
            "the query \(queries[number].name) has \(rows) rows with an index on \(candidate.definition.text), and "
              + "\(answers[number].rows) without", path: database.path)
        }
        guard Self.uses(name, found.plan), found.isClearlyBelow(answers[number].now) else { continue }
        answers[number].trials.append(
          Trial(
            definition: candidate.definition, time: found, making: making / .seconds(1)))
      }
      try database.deleteIndex(name)
    }
    for index in answers.indices { answers[index].trials.sort(by: Self.isBetter) }
    self.answers = answers
  }

  /// The indexes that ADVISE names for a query.
  private static func advised(_ query: NamedQuery, in database: Database) throws -> [ValueIndexDefinition] {
    try database.query("ADVISE " + query.text).run(query.parameters).compactMap { row in
      guard let line = row[0].string, let start = line.firstRange(of: ": CREATE INDEX ") else { return nil }
      let text = String(line[line.index(start.lowerBound, offsetBy: 2)...])
      guard case .index(let statement) = try QueryStatement(parsing: text),
        case .create(_, let definition, _) = statement.action
      else { return nil }
      return definition
    }
  }

  /// Whether an index is better: clearly faster, or as fast with fewer expressions.
  private static func isBetter(_ left: Trial, _ right: Trial) -> Bool {
    if left.time.isClearlyBelow(right.time) { return true }
    if right.time.isClearlyBelow(left.time) { return false }
    let counts = (left.definition.expressions.count, right.definition.expressions.count)
    return counts.0 == counts.1 ? left.time.median < right.time.median : counts.0 < counts.1
  }

  private static func time(_ query: NamedQuery, on database: Database, seconds: Double) throws -> (
    Time, rows: Int
  ) {
    let prepared = try database.query(query.text)
    // Rows that were never read are read from the disk.
    let rows = try prepared.run(query.parameters).count
    var samples: [Double] = []
    let clock = ContinuousClock()
    let end = clock.now + .seconds(seconds)
    repeat {
      var read = 0
      samples.append(
        try clock.measure {
          try prepared.forEach(query.parameters) { _ in
            read += 1
            return true
          }
        } / .seconds(1))
    } while samples.count < leastRuns || (clock.now < end && samples.count < mostRuns)
    samples.sort()
    let time = Time(
      median: samples[samples.count / 2],
      quartiles: samples[samples.count / 4]...samples[samples.count * 3 / 4],
      plan: try prepared.explain(query.parameters).lines)
    return (time, rows)
  }

  private static func uses(_ index: DatabaseIndex, _ plan: [String]) -> Bool { uses(index.name, plan) }

  /// Whether a plan names the index.
  private static func uses(_ name: String, _ plan: [String]) -> Bool {
    plan.contains { $0.contains("Index \(name) as ") || $0.contains("Full-text index \(name) as ") }
  }

  /// A name that no index of the database has.
  private static func freeName(_ indexes: [DatabaseIndex]) -> String {
    var name = "advised"
    while indexes.contains(where: { $0.name == name }) { name += "-" }
    return name
  }
}

extension Array where Element: Hashable {
  /// Each element once, in the order of the first ones.
  fileprivate var uniqued: [Element] {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}
