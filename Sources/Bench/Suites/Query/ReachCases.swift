import BenchmarkKit
import Touchstone

// Two ways to the same rows or changes: what a form of the language costs beside a plain one.
extension QueryData {
  private static let routes = QueryIndex(name: "typeSource", expressions: ["type", "sourceairport"])

  /// The number of routes of each airport: an inner query for each airport, and the join that asks the same.
  func correlated(_ form: String) -> Workload {
    let text =
      form == "subquery"
      ? """
      SELECT a.faa, (SELECT RAW COUNT(*) FROM _ AS r WHERE r.type = 'route' AND r.sourceairport = a.faa)[0] AS n
      FROM _ AS a WHERE a.type = 'airport'
      """
      : """
      SELECT a.faa, COUNT(r.sourceairport) AS n FROM _ AS a
      LEFT JOIN _ AS r ON r.type = 'route' AND r.sourceairport = a.faa
      WHERE a.type = 'airport' GROUP BY META(a).id, a.faa
      """
    return rows(.correlated, "routes of each airport, by an inner query or a join", form, text)
  }

  /// ROW_NUMBER in the order of an index, and the rows of the index.
  func rowNumbers(_ form: String) -> Workload {
    let number = form == "window" ? ", ROW_NUMBER() OVER (ORDER BY type, sourceairport) AS n" : ""
    return rows(
      .rowNumber, "routes in the order of an index, with ROW_NUMBER or without", form,
      "SELECT sourceairport\(number) FROM _ WHERE type = 'route' ORDER BY type, sourceairport")
  }

  /// Sorts all routes and groups them by pairs of airports: in memory, and with most rows in files.
  func spilled(_ form: String) -> Workload {
    let texts = [
      "SELECT sourceairport, destinationairport, distance FROM _ WHERE type = 'route' ORDER BY distance, META().id",
      """
      SELECT sourceairport, destinationairport, COUNT(DISTINCT airline) AS n, MAX(distance) AS d FROM _
      WHERE type = 'route' GROUP BY sourceairport, destinationairport
      """,
    ]
    var spilling = Query.Options()
    // Most documents are routes, and a kept row of one takes some hundred bytes.
    spilling.spillsFrom = 16 * dataset.count
    let options = form == "files" ? spilling : Query.Options()
    return Workload(
      suite: "query", name: QueryWork.spilled.rawValue,
      summary: "sorts and groups all routes, in memory or mostly in temporary files",
      parameters: ["form": .string(form)], operations: texts.count
    ) { [self] trial in
      let database = try database(trial.engine, .none)
      let queries = try texts.map { try database.query($0, options: options) }
      try check(rows: queries.map { try $0.run() }, of: QueryWork.spilled.rawValue)
      for query in queries {
        let hasFiles = try query.explain(analyze: true).lines[0].contains("temporary files")
        guard hasFiles == (form == "files") else {
          throw WrongPlan(description: "\(hasFiles ? "temporary files" : "memory") held the rows")
        }
      }
      return Trial(
        timing: {
          for query in queries {
            let sum = try query.run().sum
            withExtendedLifetime(sum) {}
          }
        }, finish: { try database.close() })
    }
  }

  private func rows(_ work: QueryWork, _ summary: String, _ form: String, _ text: String) -> Workload {
    Workload(
      suite: "query", name: work.rawValue, summary: summary, parameters: ["form": .string(form)],
      operations: 1
    ) { [self] trial in
      let database = try database(trial.engine, .only(Self.routes))
      let query = try database.query(text)
      // The columns are the same but for ROW_NUMBER.
      try check(rows: [try query.run()], of: "\(work.rawValue) \(work == .rowNumber ? form : "")")
      return Trial(
        timing: {
          let sum = try query.run().sum; withExtendedLifetime(sum) {}
        },
        finish: { try database.close() })
    }
  }

  /// One property of all routes in one transaction: by UPDATE, and by a call for each document.
  func updateRoutes(_ form: String) -> Workload {
    Workload(
      suite: "query", name: QueryWork.update.rawValue,
      summary: "sets a property of all routes in one transaction",
      parameters: ["form": .string(form)], operations: dataset.count
    ) { [self] trial in
      let database = try open(try context.engine(trial.engine), trial.directory)
      try dataset.save(in: database)
      let ids = try database.query("SELECT RAW META().id FROM _ WHERE type = 'route'").run()
        .compactMap { $0[0].string }
      return Trial(
        timing: {
          if form == "statement" {
            let changed = try database.execute("UPDATE _ SET stops = 9 WHERE type = 'route'").documents.count
            guard changed == ids.count else { throw WrongPlan(description: "\(changed) routes were changed") }
            return
          }
          try database.inBatch {
            for id in ids {
              guard let stored = try database.document(id) else { continue }
              var document = try MutableDocument(stored)
              document["stops"] = 9
              try database.save(&document)
            }
          }
        }, finish: { try database.close() })
    }
  }
}
