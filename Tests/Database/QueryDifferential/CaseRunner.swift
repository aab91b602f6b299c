import Query
import TestSupport

/// What differs.
package struct DifferentialFailure: Sendable {
  /// Where.
  package var engine: EngineName
  /// How the rows were taken, and with which options.
  package var way: String
  /// What was wrong: rows, or an error.
  package var message: String
}

/// How rows are taken.
enum RowWay: String, CaseIterable {
  case plain = "run, without indexes"
  case run = "run"
  case spilled = "run, with temporary files"
  case forEach = "forEach"
  case kept = "forEach, rows kept"
  case decoded = "decode"
  case json = "JSON text"
  case executed = "EXECUTE"
  case live = "live query"
}

extension CaseDatabase {
  /// What came of a query.
  enum Outcome {
    /// As the naive evaluator says.
    case same
    /// The same everywhere; the naive evaluator has no answer.
    case alike
    /// Left open by the language: not looked at.
    case open
    /// The language refuses the query, everywhere.
    case refused(String)
    case failed(DifferentialFailure)
  }

  /// Runs a query on all engines by some ways, and compares rows with those of the naive evaluator: or with one another's,
  /// when that has no answer.
  func check(_ query: SelectStatement, _ parameters: JSONObject, ways: [RowWay] = RowWay.allCases) throws
    -> (outcome: Outcome, rows: Int)
  {
    if let changeFailure { return (.failed(changeFailure), 0) }
    data.parameters = parameters
    var answer: NaiveAnswer?
    do { answer = try naiveAnswer(query, data) } catch NaiveError.open {
      return (.open, 0)
    } catch is NaiveError {}
    let text = query.description
    var refusals: [(String, String)] = []
    var reference: [[JSONValue?]]?
    for (engine, database) in databases {
      for way in ways {
        func failure(_ message: String) -> Outcome {
          .failed(DifferentialFailure(engine: engine, way: way.rawValue, message: message))
        }
        let rows: [[JSONValue?]]
        do { rows = try CaseDatabase.rows(text, parameters, database, way) } catch let error as QueryError {
          // What can't be computed depends on which rows the plan looks at.
          if error.code == .evaluation { continue }
          refusals.append(("\(engine), \(way.rawValue)", "\(error)"))
          continue
        } catch { return (failure("\(error)"), 0) }
        if let refusal = refusals.first {
          return (failure("is answered; refused by \(refusal.0): \(refusal.1)"), 0)
        }
        if let answer {
          let isLoose = way == .decoded
          if let message = answer.difference(rows, isLoose: isLoose) {
            return (failure(message + CaseDatabase.plan(text, database, way)), 0)
          }
        } else if let known = reference {
          guard !isSame(rows, known, query) else { continue }
          return (
            failure(
              "\(describe(rows))\nand \(databases[0].engine), \(ways[0].rawValue), gave\n\(describe(known))"),
            0
          )
        } else {
          reference = rows
        }
      }
    }
    if let refusal = refusals.first { return (.refused(refusal.1), 0) }
    guard let answer else { return (.alike, reference?.count ?? 0) }
    return (.same, answer.rows.count)
  }

  /// Watches queries while steps are made, and compares the last rows that are told.
  func checkLive(_ queries: [(query: SelectStatement, parameters: JSONObject)], _ new: [DatabaseStep]) throws
    -> (query: Int, DifferentialFailure)?
  {
    var watched: [(number: Int, engine: EngineName, told: ToldRows, live: LiveQuery, query: Query)] = []
    defer { for one in watched { one.live.cancel() } }
    for (engine, database) in databases {
      for (number, query) in queries.enumerated() {
        guard let prepared = try? database.query(query.query.description) else { continue }
        let told = ToldRows()
        let live = try database.observe(prepared, parameters: dictionary(query.parameters)) { told.take($0) }
        guard told.waits(patience, until: { $0 != nil }) else {
          return (
            number, DifferentialFailure(engine: engine, way: RowWay.live.rawValue, message: "tells nothing")
          )
        }
        watched.append((number, engine, told, live, prepared))
      }
    }
    try apply(new)
    for one in watched {
      let query = queries[one.number]
      data.parameters = query.parameters
      // Which rows there are has to be told; which of several that are equally good may change with each run.
      guard let answer = try? naiveAnswer(query.query, data),
        (try? one.query.run(dictionary(query.parameters))) != nil
      else { continue }
      let isRight = one.told.waits(patience) { rows in
        rows.map { answer.difference($0, isLoose: true) == nil } ?? false
      }
      if let error = one.told.error {
        let failure = DifferentialFailure(engine: one.engine, way: RowWay.live.rawValue, message: "\(error)")
        return (one.number, failure)
      }
      if !isRight {
        let last = one.told.rows ?? []
        return (
          one.number,
          DifferentialFailure(
            engine: one.engine, way: RowWay.live.rawValue,
            message: "told last: " + (answer.difference(last, isLoose: true) ?? "in time"))
        )
      }
    }
    return nil
  }

  private static func rows(_ text: String, _ parameters: JSONObject, _ database: Database, _ way: RowWay)
    throws
    -> [[JSONValue?]]
  {
    if way == .executed { return try executed(text, parameters, database) }
    var options = Query.Options(usesIndexes: way != .plain)
    if way == .spilled { options.spillsFrom = 1 }
    let query = try database.query(text, options: options)
    let parameters = dictionary(parameters)
    func values(_ row: QueryRow) throws -> [JSONValue?] {
      try (0..<row.count).map { try row[$0].jsonValue() }
    }
    func values(_ object: JSONObject) -> [JSONValue?] { query.columnNames.map { object[$0] } }
    var rows: [[JSONValue?]] = []
    switch way {
    case .executed: break
    case .plain, .run, .spilled: rows = try query.run(parameters).map(values)
    case .forEach:
      try query.forEach(parameters) { row in
        rows.append(try values(row))
        return true
      }
    case .kept:
      var kept: [QueryRow] = []
      try query.forEach(parameters) { row in
        kept.append(row)
        return true
      }
      rows = try kept.map(values)
    case .decoded: rows = try query.run(parameters).map { values(try $0.decode(DecodedRow.self).columns) }
    case .json:
      rows = try query.run(parameters).map { row in
        guard row.isRaw else { return values(try JSONValue(json: row.json()).object ?? JSONObject()) }
        // A missing value is written as null.
        return row[0].exists ? [try JSONValue(json: row.json())] : [missing]
      }
    case .live:
      let told = ToldRows()
      let live = try database.observe(query, parameters: parameters) { told.take($0) }
      defer { live.cancel() }
      _ = told.waits(30) { $0 != nil }
      if let error = told.error { throw error }
      rows = told.rows ?? []
    }
    return rows
  }

  /// The rows of a statement that PREPARE has given a name. EXPLAIN and ADVISE have to answer too.
  private static func executed(_ text: String, _ parameters: JSONObject, _ database: Database) throws
    -> [[JSONValue?]]
  {
    _ = try database.query("PREPARE FORCE q AS \(text)").run()
    let values = dictionary(parameters)
    for word in ["EXPLAIN", "ADVISE"] {
      for row in try database.query("\(word) \(text)").run(values) {
        guard let line = row[0].string, line.utf8.contains(where: { $0 < 0x20 && $0 != 0x0A && $0 != 0x09 })
        else { continue }
        // Texts of the query are shown too.
        if !text.utf8.contains(where: { $0 < 0x20 }) {
          throw DatabaseError(.damaged, "\(word) shows \(line.debugDescription)", path: database.path)
        }
      }
    }
    let using = parameters.isEmpty ? "" : " USING \(CaseGenerator.literal(.object(parameters)))"
    let query = try database.query("EXECUTE q\(using)")
    return try query.run(using.isEmpty ? values : [:]).map { row in
      try (0..<row.count).map { try row[$0].jsonValue() }
    }
  }

  private static func plan(_ text: String, _ database: Database, _ way: RowWay) -> String {
    let query = try? database.query(text, options: Query.Options(usesIndexes: way != .plain))
    guard let lines = try? query?.explain().lines else { return "" }
    return "\nplan:\n  " + lines.joined(separator: "\n  ")
  }

  private func isSame(_ rows: [[JSONValue?]], _ others: [[JSONValue?]], _ query: SelectStatement) -> Bool {
    if rows.count != others.count { return false }
    // Which of several equally good rows are shown is open then.
    if query.limit != nil || query.offset != nil || query.hasAggregates || !query.groupBy.isEmpty
      || query.isDistinct
    {
      return true
    }
    return rows.map { naiveKey($0, .byValue) }.sorted() == others.map { naiveKey($0, .byValue) }.sorted()
  }
}

private func dictionary(_ object: JSONObject) -> [String: JSONValue] {
  Dictionary(object.map { ($0.key, $0.value) }) { first, _ in first }
}

private func describe(_ rows: [[JSONValue?]]) -> String {
  let shown = rows.prefix(12).map { "  " + naiveText(ofRow: $0) }
  return shown.joined(separator: "\n")
    + (rows.count > 12 ? "\n  … \(rows.count) rows" : rows.isEmpty ? "  no rows" : "")
}

extension NaiveAnswer {
  /// What is wrong with rows; nil when they are an answer to the query.
  func difference(_ rows: [[JSONValue?]], isLoose: Bool) -> String? {
    let all = self.rows
    let strictness = isLoose ? max(strictness, .byValue) : strictness
    let wanted = Swift.max(0, Swift.min(limit ?? .max, all.count - offset))
    func difference(_ what: String) -> String {
      let shown = Array(all.dropFirst(offset).prefix(wanted))
      return "\(what)\ngave \(rows.count):\n\(describe(rows))\nwanted \(wanted):\n\(describe(shown))"
    }
    guard rows.count == wanted else { return difference("another number of rows") }
    var position = 0
    var next = 0
    for run in runs {
      let end = position + run.count
      defer { position = end }
      guard end > offset, next < rows.count else { continue }
      var left: [ByteString: Int] = [:]
      for row in run { left[naiveKey(row, strictness), default: 0] += 1 }
      let count = Swift.min(end - Swift.max(position, offset), rows.count - next)
      for row in rows[next..<(next + count)] {
        let key = naiveKey(row, strictness)
        guard let number = left[key], number > 0 else { return difference("row \(naiveText(ofRow: row))") }
        left[key] = number - 1
      }
      next += count
    }
    return nil
  }
}

/// What a live query tells.
private final class ToldRows: Sendable {
  private struct State {
    var rows: [[JSONValue?]]?
    var error: (any Error)?
    var count = 0
  }

  private let state = Lock(State())
  private let signal = CountingSemaphore()

  var rows: [[JSONValue?]]? { state.withLock { $0.rows } }
  var error: (any Error)? { state.withLock { $0.error } }

  func take(_ outcome: LiveQuery.Outcome) {
    let result = Result {
      try outcome.get().map { row in try (0..<row.count).map { try row[$0].jsonValue() } }
    }
    state.withLock { state in
      switch result {
      case .success(let rows): state.rows = rows
      case .failure(let error): state.error = error
      }
      state.count += 1
    }
    signal.signal()
  }

  /// Waits so long for rows that meet a condition. True when they came, or an error did.
  func waits(_ seconds: Double, until isMet: ([[JSONValue?]]?) -> Bool) -> Bool {
    let deadline = ContinuousClock.now.advanced(by: .seconds(seconds))
    while ContinuousClock.now < deadline {
      if isMet(rows) { return true }
      if error != nil { return true }
      _ = signal.wait(seconds: 0.2)
    }
    return isMet(rows)
  }
}
