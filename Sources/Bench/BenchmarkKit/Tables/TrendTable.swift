import FoundationEssentials

/// A trend as text and as JSON.
extension Trend {
  /// A line for each workload on each engine: how it changed, and in which builds.
  package var table: String {
    var table = TextTable(["last/first", "runs", "by", "workload", "changes"])
    for row in rows {
      let changes = row.changes.map { "\(Format.ratio($0.ratio)) at \(row.points[$0.index].build)" }
      table.add(
        Format.ratio(row.ratio), "\(row.points.count)", row.measure.rawValue, row.identity,
        changes.joined(separator: ", "))
    }
    return table.text
  }

  /// One JSON object with all points.
  package func json() throws -> String {
    struct Change: Encodable {
      let build, started: String
      let ratio: Double
    }
    struct RowObject: Encodable {
      let identity, measure: String
      let ratio: Double
      let points: [Point]
      let changes: [Change]
    }
    struct Object: Encodable {
      let rows: [RowObject]
    }
    let object = Object(
      rows: rows.map { row in
        RowObject(
          identity: row.identity, measure: row.measure.rawValue, ratio: row.ratio, points: row.points,
          changes: row.changes.map { change in
            let point = row.points[change.index]
            return Change(build: point.build, started: point.started, ratio: change.ratio)
          })
      })
    return String(decoding: try JSONEncoder.readable.encode(object), as: UTF8.self)
  }
}
