import Bytes
import Storage

/// Applies the new rows of some documents to a stored view: removes the rows that the documents had, stores the new
/// ones, and keeps the partial reductions. Used on one thread, in one transaction.
struct RowUpdate {
  /// A row to remove or to put.
  private struct Operation: BitwiseCopyable {
    var prefix: UInt64
    /// The place of the row key: in `removed`, or in the mapped rows.
    var offset: Int
    var length: Int32
    /// The index in `puts`; -1 to remove.
    var put: Int32
  }

  private let tables: ViewTables
  private let transaction: any WriteTransaction
  private let rows: MappedRows
  private let view: Int
  /// The indexes of special keys.
  let specialKeys: SpecialKeyUpdate

  init(_ rows: MappedRows, view: Int, _ tables: ViewTables, in transaction: any WriteTransaction) {
    self.rows = rows
    self.view = view
    self.tables = tables
    self.transaction = transaction
    specialKeys = SpecialKeyUpdate(tables.record, in: transaction)
  }

  /// Loads the rows into empty keyspaces, and makes the partial reductions as they pass. Returns the
  /// number of rows.
  func load(_ tree: ReductionTree) throws -> Int {
    let sorted = rows.sortedRows(ofView: view)
    let all = rows.rows
    let longest = sorted.reduce(0) { max($0, Int(all[$1].rowKeyLength)) }
    try tree.build(in: transaction) { add in
      try tables.rows.load(longestKey: longest, in: transaction) { append in
        for (place, index) in sorted.enumerated() {
          if place % MappedRows.rowsAhead == 0 { rows.readAhead(sorted[place...]) }
          let row = all[index]
          let (key, value) = (rows.rowKey(row).bytes, rows.value(row).bytes)
          try append(key, value)
          try add(key, value)
        }
      }
    }
    if rows.hasSpecialKeys { try specialKeys.load(rows, sorted) }
    var value = ByteBuffer(capacity: 512)
    let (documents, order) = (rows.documents, rows.sortedDocuments())
    try transaction.load(tables.sources) { append in
      for place in documents.indices {
        let document = documents[order?[place] ?? place]
        if document.rowCount > 0, composeSources(of: document, into: &value) {
          try append(rows.id(document).bytes, value.bytes.bytes)
        }
      }
    }
    return sorted.count
  }

  /// Puts the rows of documents that have none yet. Returns the number of rows.
  func put() throws -> Int {
    let sorted = rows.sortedRows(ofView: view)
    for index in sorted {
      let row = rows.rows[index]
      try tables.rows.put(rows.rowKey(row).bytes, rows.value(row).bytes, in: transaction)
      if rows.hasSpecialKeys {
        try specialKeys.replace(rows.rowKey(row).bytes, old: nil, new: rows.value(row).bytes)
      }
    }
    try specialKeys.finish()
    var value = ByteBuffer(capacity: 512)
    for document in rows.documents where document.rowCount > 0 {
      if composeSources(of: document, into: &value) {
        try transaction.put(rows.id(document).bytes, value.bytes.bytes, in: tables.sources)
      }
    }
    return sorted.count
  }

  private func composeSources(of document: MappedRows.Document, into value: inout ByteBuffer) -> Bool {
    value.removeAll()
    let all = rows.rows
    for index in document.firstRow..<(document.firstRow + Int(document.rowCount)) {
      let row = all[index]
      guard row.view == Int32(view) else { continue }
      RowSources.append(key: rows.key(row), emission: row.emission, to: &value)
    }
    return value.count > 0
  }

  /// Replaces the rows of the documents, and notes each row that goes, comes or changes in the partial reductions.
  /// Returns the number of these rows.
  func replace(_ tree: ReductionTree) throws -> Int {
    var removed = ByteBuffer(capacity: 4096)
    var operations: ContiguousArray<Operation> = []
    var value = ByteBuffer(capacity: 512)
    var escaped = ByteBuffer(capacity: 512)
    for document in rows.documents {
      let id = rows.id(document)
      var hadRows = false
      escaped.removeAll()
      StoredRow.escape(id, into: &escaped)
      _ = try transaction.read(id.bytes, in: tables.sources) { sources in
        hadRows = true
        try RowSources.forEach(sources) { key, emission in
          let offset = removed.count
          key.withUnsafeBytes { removed.append($0) }
          removed.append(escaped.bytes)
          if emission > 0 {
            withUnsafeBytes(of: emission.bigEndian) { removed.append($0) }
          }
          let length = removed.count - offset
          operations.append(
            Operation(
              prefix: RowKeyPrefix.word(
                of: UnsafeRawBufferPointer(start: removed.base + offset, count: length), at: 0),
              offset: offset, length: Int32(length), put: -1))
        }
      }
      if composeSources(of: document, into: &value) {
        try transaction.put(id.bytes, value.bytes.bytes, in: tables.sources)
      } else if hadRows {
        try transaction.delete(id.bytes, in: tables.sources)
      }
    }
    let puts = rows.rows
    for (index, row) in puts.enumerated() where row.view == Int32(view) {
      operations.append(
        Operation(
          prefix: rows.prefix(of: row), offset: row.offset, length: row.rowKeyLength, put: Int32(index)))
    }
    func key(_ operation: Operation) -> UnsafeRawBufferPointer {
      operation.put < 0
        ? UnsafeRawBufferPointer(start: removed.base + operation.offset, count: Int(operation.length))
        : rows.rowKey(puts[Int(operation.put)])
    }
    // A row that is removed comes before the row that is put in its place.
    operations.sort { left, right in
      if left.prefix != right.prefix { return left.prefix < right.prefix }
      let order = compareBytes(key(left), key(right))
      return order != 0 ? order < 0 : left.put < right.put
    }
    return try apply(operations, key: key, puts, tree)
  }

  private func apply(
    _ operations: ContiguousArray<Operation>, key: (Operation) -> UnsafeRawBufferPointer,
    _ puts: UnsafeBufferPointer<MappedRows.Row>, _ tree: ReductionTree
  ) throws -> Int {
    var old = ByteBuffer(capacity: 512)
    var changed = 0
    var index = 0
    while index < operations.count {
      let operation = operations[index]
      let rowKey = key(operation)
      var put = operation.put
      var isOld = false
      index += 1
      if put < 0 {
        old.removeAll()
        isOld = try tables.rows.read(rowKey.bytes, in: transaction) { value in
          value.withUnsafeBytes { old.append($0) }
        }
        if index < operations.count, operations[index].put >= 0,
          compareBytes(key(operations[index]), rowKey) == 0
        {
          put = operations[index].put
          index += 1
        }
      }
      if put >= 0 {
        let value = rows.value(puts[Int(put)])
        // The same revision, mapped again.
        if isOld, compareBytes(old.bytes, value) == 0 { continue }
        try tables.rows.put(rowKey.bytes, value.bytes, in: transaction)
        try specialKeys.replace(rowKey.bytes, old: isOld ? old.bytes.bytes : nil, new: value.bytes)
        tree.rowPut(rowKey.bytes, old: isOld ? old.bytes.bytes : nil, new: value.bytes)
        changed += 1
      } else if isOld {
        _ = try tables.rows.delete(rowKey.bytes, in: transaction)
        try specialKeys.replace(rowKey.bytes, old: old.bytes.bytes, new: nil)
        tree.rowRemoved(rowKey.bytes, old: old.bytes.bytes)
        changed += 1
      } else {
        throw ViewError(.damaged, "a row that its document had is missing")
      }
    }
    try specialKeys.finish()
    return changed
  }
}
