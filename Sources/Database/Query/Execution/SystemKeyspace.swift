// Sources of FROM that tell about the database: system:indexes and others. Each is an array, which a run gets as
// a parameter whose name no query can write.

import Documents
import Fleece
import Storage

/// A source of rows about the database.
enum SystemKeyspace: String, CaseIterable {
  /// The indexes, also full-text indexes.
  case indexes
  /// The database.
  case keyspaces
  /// The statements that PREPARE has named.
  case prepareds
  /// One empty row.
  case dual
  /// The row of INFER.
  case schema

  static let prefix = "system:"

  /// The name in FROM, and of the parameter with the rows.
  var name: String { Self.prefix + rawValue }

  /// The keyspace whose rows a parameter has. Nil for other parameters.
  init?(parameter name: ByteString) {
    guard name.bytes.starts(with: Self.prefix.utf8) else { return nil }
    self.init(rawValue: String(name.string.dropFirst(Self.prefix.utf8.count)))
  }

  /// The keyspace of a name such as `system:indexes`. Nil for a name without the prefix.
  ///
  /// - Throws: `unknownName` for an unknown one.
  static func named(_ name: ByteString, at position: SourcePosition, in text: String?) throws
    -> SystemKeyspace?
  {
    guard name.string.hasPrefix(prefix) else { return nil }
    let rest = String(name.string.dropFirst(prefix.count))
    if let keyspace = SystemKeyspace(rawValue: rest.lowercased()) { return keyspace }
    let names = allCases.map(\.rawValue)
    throw QueryError(
      .unknownName,
      "there is no \(name)\(Suggestions.hint(for: rest, among: names)); there are "
        + allCases.map(\.name).joined(separator: ", "), at: position, in: text)
  }

  /// The rows.
  func rows(
    _ snapshot: DocumentSnapshot, _ source: QuerySource, _ options: Query.Options,
    _ inference: InferStatement?,
    _ cancellation: QueryCancellation
  ) throws -> JSONValue {
    switch self {
    case .dual: return [[:]]
    case .keyspaces:
      return [
        [
          "id": "_default", "name": "_default", "database": .string(source.name),
          "count": JSONValue(try snapshot.documentCount),
        ]
      ]
    case .prepareds:
      return .array(
        source.knowledge.statements.all(of: options.statementOwner).map {
          ["name": .string($0.name.string), "statement": .string($0.statement.description)]
        })
    case .indexes: return .array(try snapshot.indexes.map(Self.row))
    case .schema:
      var schema = InferredSchema(inference)
      try schema.read(snapshot, cancellation)
      return [schema.json]
    }
  }

  private static func row(_ record: IndexRecord) throws -> JSONValue {
    var row: JSONObject = ["name": .string(record.name), "keyspace_id": "_default", "state": "online"]
    func put(_ keys: [QueryExpression], _ condition: QueryExpression?) {
      row["index_key"] = .array(keys.map { .string($0.description) })
      if let condition { row["condition"] = .string(condition.description) }
    }
    switch record.kind {
    case ValueIndexKind.name:
      let definition = try ValueIndexDefinition(record)
      row["using"] = "gsi"
      put(definition.expressions, definition.condition)
      if let unnest = definition.unnest { row["unnest"] = .string("\(unnest.array) AS \(unnest.item)") }
    case FullTextIndexKind.name:
      let definition = try FullTextIndexDefinition(record)
      row["using"] = "fts"
      put(definition.expressions, definition.condition)
    default: row["using"] = .string(record.kind)
    }
    return .object(row)
  }
}

extension ResolvedQuery {
  /// The sources about the database that it reads, also in inner queries.
  var systemKeyspaces: Set<SystemKeyspace> {
    var found: Set<SystemKeyspace> = []
    for source in sources {
      if case .items(.parameter(let name), _, _) = source.kind, let keyspace = SystemKeyspace(parameter: name)
      {
        found.insert(keyspace)
      }
    }
    for subquery in subqueries {
      for query in subquery.queries { found.formUnion(query.systemKeyspaces) }
    }
    return found
  }
}
