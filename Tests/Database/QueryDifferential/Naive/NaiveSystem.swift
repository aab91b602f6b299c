import Query
import TestSupport

// What the sources about the database have. A query sees the members that the generator asks for.

/// An index, as its statement gave it.
struct NaiveIndex {
  var name: String
  var keys: [String]
  var condition: String?
  var isArray = false
  var isFullText = false
}

extension NaiveData {
  /// The rows of `system:…`. Nil for another name.
  func system(_ name: ByteString) throws -> [JSONValue]? {
    let live = documents.filter { !$0.isDeleted }
    switch name.string {
    case "system:dual": return [[:]]
    case "system:keyspaces":
      return [["id": "_default", "name": "_default", "database": "test", "count": JSONValue(live.count)]]
    case "system:indexes": return try indexes.map(row)
    case "system:schema":
      var properties = JSONObject()
      for name in Set(live.flatMap { ($0.body.object ?? JSONObject()).keys.map { ByteString($0) } }) {
        properties[name.string] = .object(
          described(live.compactMap { $0.body.object?[name.string] }, of: live.count))
      }
      return [["#docs": JSONValue(live.count), "properties": .object(properties)]]
    default: return nil
    }
  }

  private func row(_ index: NaiveIndex) throws -> JSONValue {
    func printed(_ text: String) throws -> JSONValue {
      let query = try SelectStatement(parsing: "SELECT 1 FROM _ WHERE \(text)")
      return .string(query.condition?.description ?? "")
    }
    var row: JSONObject = [
      "name": .string(index.name), "keyspace_id": "_default", "state": "online",
      "using": index.isFullText ? "fts" : "gsi", "index_key": .array(try index.keys.map(printed)),
    ]
    if let condition = index.condition { row["condition"] = try printed(condition) }
    if index.isArray { row["unnest"] = true }
    return .object(row)
  }

  /// How often a property occurs, with which types: the most frequent one first.
  private func described(_ values: [JSONValue], of whole: Int) -> JSONObject {
    let names = ["missing", "null", "boolean", "number", "string", "array", "object", "binary"]
    var counts: [String: Int] = [:]
    for value in values { counts[names[naiveRank(value)], default: 0] += 1 }
    let types = counts.sorted { $0.value != $1.value ? $0.value > $1.value : $0.key < $1.key }
    func each(_ values: [JSONValue]) -> JSONValue { values.count == 1 ? values[0] : .array(values) }
    let share = (Double(values.count) * 10_000 / Double(max(1, whole))).rounded() / 100
    return [
      "#docs": each(types.map { JSONValue($0.value) }), "type": each(types.map { .string($0.key) }),
      "%docs": .double(share),
    ]
  }
}
