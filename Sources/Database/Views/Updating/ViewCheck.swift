import Bytes
import Documents
import Storage

extension ViewIndexes {
  /// Compares every stored view with a fresh map of the documents, its partial reductions with its rows, and its own
  /// keyspaces with each other. Part of an integrity check.
  ///
  /// Documents that have changed since a view was brought up to date can't be compared. Of a view without functions in
  /// this process, only the keyspaces are compared.
  package func check(_ check: IntegrityCheck) throws {
    var names: [String] = []
    var numbers: Set<UInt32> = []
    try check.part("views") {
      try ViewRecord.forEach(in: check.transaction) { name, record in
        names.append(name)
        numbers.insert(try record.get().number)
      }
      for keyspace in try check.transaction.keyspaces().keys.sorted() where keyspace.hasPrefix("view.") {
        let number = keyspace.split(separator: ".").dropFirst().first.flatMap { UInt32($0) }
        if !(number.map { numbers.contains($0) } ?? false) {
          try check.report("views", "there is no view for the keyspace \(keyspace)")
        }
      }
    }
    for name in names {
      let subject = "view '\(name)'"
      try check.part(subject) { try ViewCheck(self, name, subject, check)?.run() }
    }
  }
}

/// The check of one view.
private struct ViewCheck {
  /// Mapped rows are compared when they take this much memory, in bytes.
  private static let memoryLimit = 16 << 20

  private let name: String
  private let subject: String
  private let check: IntegrityCheck
  private let record: ViewRecord
  private let tables: ViewTables
  private let group: UpdateGroup?
  private let member: Int
  private let encoders: [ViewKeyEncoder]

  /// Nil if there are no rows to check.
  init?(_ indexes: ViewIndexes, _ name: String, _ subject: String, _ check: IntegrityCheck) throws {
    self.name = name
    self.subject = subject
    self.check = check
    guard let record = try ViewRecord.read(name, in: check.transaction), record.stage != .empty else {
      return nil
    }
    self.record = record
    tables = try ViewTables(record, of: name, in: check.transaction)
    let group = try? indexes.group(of: name)
    let member = group?.members.firstIndex { $0.name.hasSameBytes(as: name) } ?? 0
    encoders = try group?.members.map { try ViewKeyEncoder($0.collation) } ?? []
    // Rows of another map function are dropped at the next query.
    if let found = group?.members[member] {
      let wanted = ViewRecord(
        number: 0, collation: found.collation, mapVersion: found.mapVersion, documentType: found.documentType,
        collator: Array(encoders[member].collatorVersion.utf8), language: found.language)
      self.group = record.isSameMap(wanted) ? group : nil
    } else {
      self.group = nil
    }
    self.member = member
  }

  func run() throws {
    let rows = try checkSources()
    let stored = try countRows()
    if rows != stored {
      try check.report(subject, "documents have \(rows) rows in all, but \(stored) are stored")
    }
    guard record.stage == .whole else { return }
    if let group { try compare(group) }
    let reducer = group?.members[member].reducer
    try SpecialKeyCheck(tables, in: check.transaction).run(step: check.step) { try check.report(subject, $0) }
    // Without the reducer, or with another one, the partial reductions can't be made again.
    let tree = tables.tree(reducer, in: check.documents)
    if record.reducer == Array(ReductionTree.identity(of: reducer).utf8) {
      for fault in try tree.check(in: check.transaction) { try check.report(subject, fault) }
    } else {
      for fault in try tables.rows.check(in: check.transaction) { try check.report(subject, fault) }
    }
  }

  /// Looks up each row that a document has. Returns their number.
  private func checkSources() throws -> Int {
    var count = 0
    var key = ByteBuffer(capacity: 512)
    try check.transaction.scan(tables.sources) { id, sources in
      try check.step()
      try RowSources.forEach(sources) { encoded, emission in
        key.removeAll()
        encoded.withUnsafeBytes { key.append($0) }
        id.withUnsafeBytes { StoredRow.escape($0, into: &key) }
        if emission > 0 { withUnsafeBytes(of: emission.bigEndian) { key.append($0) } }
        count += 1
        guard try !tables.rows.read(key.bytes.bytes, in: check.transaction, { _ in }) else { return }
        try check.report(subject, "a row of the document '\(String(copying: id))' is missing")
      }
      return true
    }
    return count
  }

  private func countRows() throws -> Int {
    var count = 0
    try tables.rows.scan(.all, order: .ascending, in: check.transaction) { key, value in
      try check.step()
      _ = try StoredRow(key, value)
      count += 1
      return true
    }
    return count
  }

  // MARK: A fresh map

  private func compare(_ group: UpdateGroup) throws {
    let mapper = try group.mapper(encoders) { _ in }
    let mapped = MappedRows()
    let keys = try check.documents.sharedKeys
    var range = KeyRange.all
    var isDone = false
    while !isDone {
      mapped.removeAll()
      mapper.begin(mapped, keys, wanted: [member], limit: ViewCheck.memoryLimit)
      var last: [UInt8]?
      try check.documents.forEachDocument(in: range, order: .ascending) { document in
        try check.step()
        let isDesign = document.idBytes.withUnsafeBytes {
          $0.withMemoryRebound(to: UInt8.self) { DocumentID.isOfDesign($0) }
        }
        guard document.sequence <= record.lastSequence, group.options.includesDesign || !isDesign else {
          return true
        }
        try mapper.map(document)
        guard mapper.isFull else { return true }
        last = [UInt8](copying: document.idBytes)
        return false
      }
      try mapper.finish()
      for document in mapped.documents { try compare(document, mapped) }
      last = mapper.lastBeforeLimit ?? last
      if let last { range = KeyRange(lower: .exclusive(last)) } else { isDone = true }
    }
    // Rows of documents that aren't live any more, and haven't changed since.
    let purged = try check.documents.purgedDocuments(after: record.purge)
    guard !purged.isIncomplete else { return }
    let changed = Set(purged.ids.map { ByteString($0) })
    try check.transaction.scan(tables.sources, .all, order: .ascending, fetch: .keys) { id, _ in
      guard !changed.contains(ByteString([UInt8](copying: id))) else { return true }
      let sequence = try check.documents.withDocument(id, includeDeleted: true) { document in
        document.isDeleted && document.sequence <= record.lastSequence ? 0 : document.sequence
      }
      if sequence == nil || sequence == 0 {
        try check.report(subject, "there are rows of the document '\(String(copying: id))', which is gone")
      }
      return true
    }
  }

  private func compare(_ document: MappedRows.Document, _ mapped: MappedRows) throws {
    let id = mapped.id(document)
    var difference: String?
    var count = 0
    for index in document.firstRow..<(document.firstRow + Int(document.rowCount)) {
      let row = mapped.rows[index]
      guard row.view == Int32(member) else { continue }
      count += 1
      var isEqual = false
      let isStored = try tables.rows.read(mapped.rowKey(row).bytes, in: check.transaction) { value in
        isEqual = value.isEqual(to: mapped.value(row).bytes)
      }
      if !isStored {
        difference = "a row of a fresh map is missing"
      } else if !isEqual {
        difference = "a row differs from that of a fresh map"
      }
    }
    var stored = 0
    _ = try check.transaction.read(id.bytes, in: tables.sources) { sources in
      try RowSources.forEach(sources) { _, _ in stored += 1 }
    }
    if stored != count { difference = "\(stored) rows are stored, and a fresh map gives \(count)" }
    if let difference {
      try check.report(subject, "document '\(String(decoding: id, as: UTF8.self))': \(difference)")
    }
  }
}
