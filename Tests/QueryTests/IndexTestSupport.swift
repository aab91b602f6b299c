import Documents
import Fleece
import Foundation
import Testing
import Touchstone

@testable import Query
@testable import Storage

/// What tests of indexes share: databases on every engine, and an index recomputed without what keeps it.
enum IndexTesting {
  /// What an index gives: the values of each entry as JSON (`missing` for none), the document, and how often.
  static func rows(
    _ database: Database, _ name: String, descending: Bool = false,
    from lower: KeyRange.Edge = .unbounded, to upper: KeyRange.Edge = .unbounded
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
        var texts: [String] = []
        for index in 0..<count {
          texts.append(entry.givesBack(1 << UInt32(index)) ? try text(columns[index], sharedKeys) : "opaque")
        }
        rows.append(
          "\(texts.joined(separator: " | ")) → \(String(decoding: entry.documentID, as: UTF8.self)) × \(entry.details.count)"
        )
        return true
      }
      return rows
    }
  }

  static func text(_ value: QueryValue, _ sharedKeys: SharedKeys) throws -> String {
    switch value {
    case .missing: "missing"
    case .double(let double): "double \(double)"
    default: canonical(try value.jsonValue(sharedKeys))
    }
  }

  static func canonical(_ value: JSONValue?) -> String {
    switch value {
    case nil: "missing"
    case .array(let items)?: "[" + items.map { canonical($0) }.joined(separator: ",") + "]"
    case .object(let object)?:
      "{"
        + object.keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
        .map { "\($0):\(canonical(object[$0]))" }.joined(separator: ",") + "}"
    case let value?: "\(value)"
    }
  }

  static func encoded(_ values: String...) -> [UInt8] {
    var encoder = OrderedKeyEncoder()
    for value in values { encoder.append(string: value) }
    return encoder.bytes
  }
}
