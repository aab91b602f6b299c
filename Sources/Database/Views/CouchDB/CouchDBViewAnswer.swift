import Bytes
import Documents
import Fleece
import Storage

/// Writes the rows of a view as CouchDB's answer.
struct CouchDBViewAnswer {
  private let reader: ViewReader
  private let snapshot: DocumentSnapshot
  private let store: DocumentStore
  private let options: CouchDBViewOptions
  private let output: PiecewiseOutput
  private let documents: CouchDBDocumentWriter?

  init(
    _ reader: ViewReader, _ snapshot: DocumentSnapshot, _ store: DocumentStore, _ options: CouchDBViewOptions,
    contents: CouchDBDocumentWriter.Contents?, _ output: PiecewiseOutput
  ) throws {
    self.reader = reader
    self.snapshot = snapshot
    self.store = store
    self.options = options
    self.output = output
    documents =
      options.includesDocuments
      ? try CouchDBDocumentWriter(snapshot, options.document, contents: contents) : nil
  }

  /// Writes the answer of a view that was never brought up to date.
  static func writeEmpty(
    _ selection: ViewSelection, _ store: DocumentStore, _ options: CouchDBViewOptions,
    to output: PiecewiseOutput
  ) throws {
    let sequence = options.includesUpdateSequence ? CouchDBSequences(store).text(0) : nil
    begin(selection.grouping == nil ? (0, 0) : nil, sequence: sequence, to: output)
    output.append("\r\n]}")
  }

  private static func begin(
    _ counts: (total: Int, offset: Int)?, sequence: String?, to output: PiecewiseOutput
  ) {
    output.append("{")
    if let counts {
      output.append("\"total_rows\":")
      output.append(counts.total)
      output.append(",\"offset\":")
      output.append(counts.offset)
      output.append(",")
    }
    if let sequence {
      output.append("\"update_seq\":")
      output.append(jsonString: sequence)
      output.append(",")
    }
    output.append("\"rows\":[\r\n")
  }

  /// Writes the next slice of the answer, without the line's end.
  func write(_ selection: ViewSelection, _ slice: ViewSlice) throws {
    if !slice.hasBegun {
      if selection.grouping != nil { try checkValues() }
      slice.hasBegun = true
      let sequence =
        options.includesUpdateSequence ? CouchDBSequences(store).text(reader.record.lastSequence) : nil
      let counts = selection.grouping == nil ? (try reader.rowCount(), try reader.offset(selection)) : nil
      CouchDBViewAnswer.begin(counts, sequence: sequence, to: output)
    }
    slice.isDone = true
    if selection.grouping != nil { try writeGroups(selection) } else { try writeRows(selection, slice) }
    if slice.isDone { output.append("\r\n]}") }
  }

  // MARK: Groups

  /// Throws `invalid_value` if the reducer can't take the value of some row of the view. In CouchDB such a view has no reductions at
  /// all, whatever rows are asked for. The reduction of the whole view costs a few blocks.
  private func checkValues() throws {
    guard let reducer = reader.reducer, reducer.refusesValues else { return }
    do { _ = try reader.tree.reduce(in: reader.transaction) } catch let error as ViewReduceError
      where error.code == .invalidValue || error.code == .notANumber
    {
      throw CouchDBError(500, "invalid_value", error.message)
    } catch let error as ViewReduceError where error.code == .overflow {
      // The groups may have results.
    }
  }

  private func writeGroups(_ selection: ViewSelection) throws {
    var isFirst = true
    try reader.forEachGroup(selection) { key, result in
      if !isFirst { output.append(",\r\n") }
      isFirst = false
      output.append("{\"key\":")
      output.append(key)
      switch result {
      case .success(let json):
        output.append(",\"value\":")
        output.append(json)
      case .failure(let error): try write(error)
      }
      output.append("}")
      try output.step()
      return true
    }
  }

  private func write(_ error: any Error) throws {
    guard let error = error as? ViewReduceError else { throw error }
    switch error.code {
    case .damaged: throw error
    // A function that throws gives null.
    case .failed: output.append(",\"value\":null")
    case .doesNotShrink: write("reduce_overflow_error", error.message)
    default: write("builtin_reduce_error", error.message)
    }
  }

  private func write(_ error: StaticString, _ reason: String) {
    output.append(",\"error\":\"")
    output.append(error)
    output.append("\",\"reason\":")
    output.append(jsonString: reason)
  }

  // MARK: Rows

  private func writeRows(_ selection: ViewSelection, _ slice: ViewSlice) throws {
    var rest = selection
    if slice.last != nil {
      rest.skip = 0
      rest.limit = selection.limit.map { $0 - slice.rows }
    }
    let isSliced = selection.keys == nil
    try reader.forEachRow(rest, after: slice.last) { row in
      if slice.rows > 0 { output.append(",\r\n") }
      slice.rows += 1
      try write(row)
      guard isSliced, output.isSlice else {
        if !isSliced { try output.step() }
        return true
      }
      slice.last = [UInt8](copying: row.rowKey)
      slice.isDone = false
      return false
    }
  }

  private func write(_ row: StoredRow) throws {
    var id: [UInt8] = []
    StoredRow.unescape(row.escapedID, into: &id)
    output.append("{\"id\":")
    output.append(jsonString: String(decoding: id, as: UTF8.self))
    output.append(",\"key\":")
    output.append(row.keyJSON)
    output.append(",\"value\":")
    switch row.kind {
    case .none: output.append("null")
    case .json: output.append(row.valueJSON)
    case .document: output.append(try DocumentValue.json(of: row, in: snapshot))
    }
    if let documents {
      output.append(",\"doc\":")
      let link = row.kind == .json ? CouchDBViewAnswer.link(row.valueJSON) : nil
      output.append(
        try document(link?.id ?? id, revision: link?.revision, documents) ?? Array("null".utf8))
    }
    output.append("}")
  }

  /// What a value `{"_id": …, "_rev": …}` refers to: another document than the one that emitted it, or another revision than the
  /// current one.
  private static func link(_ value: RawSpan) -> (id: [UInt8]?, revision: String?)? {
    value.withUnsafeBytes { text in
      guard text.first == UInt8(ascii: "{"), let object = try? JSONValue(json: text).object else {
        return nil
      }
      return (object["_id"]?.string.map { Array($0.utf8) }, object["_rev"]?.string)
    }
  }

  /// The JSON of a document as it is now: nil if there is none, or if it is deleted.
  private func document(
    _ id: [UInt8], revision: String?, _ documents: CouchDBDocumentWriter
  ) throws -> [UInt8]? {
    guard id.withUnsafeBytes({ DocumentID.isStorable($0) }) else { return nil }
    var current: RevisionID?
    let json = try snapshot.withDocument(id.span.bytes) { document -> [UInt8]? in
      let revisionID = try document.revisionID()
      current = revisionID
      guard revision == nil || revision == revisionID.description else { return nil }
      var writer = JSONWriter()
      try documents.append(document, to: &writer)
      var json: [UInt8] = []
      writer.write(to: &json)
      return json
    }
    if let found = json.flatMap({ $0 }) { return found }
    guard let revision, let wanted = RevisionID(revision), wanted != current,
      let stored = try store.revision(wanted, of: String(decoding: id, as: UTF8.self)), !stored.isDeleted,
      let body = stored.body
    else { return nil }
    var older: [UInt8] = []
    older.append(contentsOf: "{\"_id\":".utf8)
    older.append(jsonString: String(decoding: id, as: UTF8.self))
    older.append(contentsOf: ",\"_rev\":\"\(wanted)\"".utf8)
    let members = Array(try body.canonicalJSON().utf8)
    if members.count > 2 {
      older.append(UInt8(ascii: ","))
      older += members.dropFirst()
    } else {
      older.append(UInt8(ascii: "}"))
    }
    return older
  }
}
