import Bytes
import Documents
import Storage

/// The keyspaces of a view in one transaction.
struct ViewTables {
  let record: ViewRecord
  let rows: LongKeyspace
  let sources: Keyspace
  let reductions: LongKeyspace

  /// Opens them. Throws `damaged` if one is missing.
  init(_ record: ViewRecord, of name: String, in transaction: any ReadTransaction) throws {
    self.record = record
    func keyspace(_ keyspaceName: String) throws -> Keyspace {
      guard let keyspace = try transaction.keyspace(named: keyspaceName) else {
        throw ViewError(.damaged, "there is no keyspace \(keyspaceName)", view: name)
      }
      return keyspace
    }
    rows = LongKeyspace(try keyspace(record.rowsName))
    sources = try keyspace(record.sourcesName)
    reductions = LongKeyspace(try keyspace(record.reductionsName))
  }

  /// Opens them, and empties the one of partial reductions.
  init(renewingReductions record: ViewRecord, of name: String, in transaction: any WriteTransaction) throws {
    let old = try ViewTables(record, of: name, in: transaction)
    try transaction.dropKeyspace(old.reductions.keyspace)
    self.record = record
    rows = old.rows
    sources = old.sources
    reductions = LongKeyspace(try transaction.createKeyspace(record.reductionsName, shape: .entries))
  }

  /// The partial reductions. They are used as long as the snapshot lasts. With `readsPartials` false, only the counts are
  /// read, and rows are reduced.
  func tree(
    _ reducer: (any Reducer)?, readsPartials: Bool = true, in snapshot: DocumentSnapshot
  ) -> ReductionTree {
    ReductionTree(rows: rows, reductions: reductions, reducer: reducer, readsPartials: readsPartials) { row in
      try DocumentValue.json(of: row, in: snapshot)
    }
  }

  /// Makes them, empty.
  init(creating record: ViewRecord, of name: String, in transaction: any WriteTransaction) throws {
    self.record = record
    try record.dropKeyspaces(in: transaction)
    try ViewRecord.checkRoom(for: 3, view: name, in: transaction)
    rows = LongKeyspace(try transaction.createKeyspace(record.rowsName, shape: .entries))
    sources = try transaction.createKeyspace(record.sourcesName, shape: .entries)
    reductions = LongKeyspace(try transaction.createKeyspace(record.reductionsName, shape: .entries))
  }
}

/// The rows of a document, as `sources` has them.
enum RowSources {
  /// Appends one.
  static func append(key: UnsafeRawBufferPointer, emission: UInt32, to value: inout ByteBuffer) {
    value.append(varint: UInt64(key.count))
    value.append(key)
    value.append(varint: UInt64(emission))
  }

  /// Calls `body` with each.
  static func forEach(_ value: RawSpan, _ body: (_ key: RawSpan, _ emission: UInt32) throws -> Void) throws {
    var reader = ByteReader(value)
    while reader.rest.byteCount > 0 {
      guard let length = reader.varint(), let key = reader.bytes(Int(clamping: length)), key.byteCount > 0,
        let emission = reader.varint().flatMap({ UInt32(exactly: $0) })
      else { throw StoredRow.damaged }
      try body(key, emission)
    }
  }
}
