import Documents
import TestSupport

@testable import Query
@testable import Storage

/// What tests of indexes share: databases on every engine, and an index recomputed without what keeps it.
enum IndexTesting {
  /// What an index gives: the values of each entry as JSON (`missing` for none), the document, and how often.
  static func rows(
    _ database: Database, _ name: String, descending: Bool = false,
    from lower: KeyRange.Edge = .unbounded, to upper: KeyRange.Edge = .unbounded
  ) throws -> [String] {
    try rows(database, name, descending: descending, from: lower, to: upper) { entry, values, sharedKeys in
      try values.indices.map { index in
        guard entry.givesBack(1 << UInt32(index)) else { return "opaque" }
        if case .double(let double) = values[index] { return "double \(double)" }
        return values[index].isMissing ? "missing" : canonical(try values[index].jsonValue(sharedKeys))
      }
    }
  }

  /// The same with the values as `texts` says.
  static func rows(
    _ database: Database, _ name: String, descending: Bool = false,
    from lower: KeyRange.Edge = .unbounded, to upper: KeyRange.Edge = .unbounded,
    _ texts: (ValueIndexEntry, UnsafeBufferPointer<QueryValue>, SharedKeys) throws -> [String]
  ) throws -> [String] {
    try database.read { snapshot in
      let record = try #require(try snapshot.indexes.first { $0.name == name })
      let reader = try ValueIndexReader(record, ValueIndexDefinition(record), in: snapshot.storage)
      let sharedKeys = try snapshot.sharedKeys
      let arena = EvaluationArena()
      let count = reader.handle.columns
      let columns = UnsafeMutablePointer<QueryValue>.allocate(capacity: count)
      defer { columns.deallocate() }
      var rows: [String] = []
      try reader.scan(from: lower, to: upper, descending: descending) { entry in
        arena.reset()
        try entry.read(into: columns, count: count, arena)
        let values = try texts(entry, UnsafeBufferPointer(start: columns, count: count), sharedKeys)
        let id = String(decoding: entry.documentID, as: UTF8.self)
        rows.append("\(values.joined(separator: " | ")) → \(id) × \(entry.details.count)")
        return true
      }
      return rows
    }
  }

  /// The text of a value, with names in the order of their bytes. `member` gives the texts of values inside.
  static func canonical(
    _ value: JSONValue?, _ member: ((JSONValue?) -> String)? = nil
  ) -> String {
    let member = member ?? { canonical($0) }
    return switch value {
    case nil: "missing"
    case .array(let items)?: "[" + items.map { member($0) }.joined(separator: ",") + "]"
    case .object(let object)?:
      "{"
        + object.keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        .map { "\($0):\(member(object[$0]))" }.joined(separator: ",") + "}"
    case .null?: "null"
    case .bool(let value)?: "bool(\(value))"
    case .int(let value)?: "int(\(value))"
    case .uint(let value)?: "uint(\(value))"
    case .double(let value)?: "double(\(value))"
    case .string(let value)?: "string(\(String(reflecting: value)))"
    case .data(let value)?: "data(\(value))"
    }
  }

  static func encoded(_ values: String...) -> [UInt8] {
    var encoder = OrderedKeyEncoder()
    for value in values { encoder.append(string: value) }
    return encoder.bytes
  }
}
