import Bytes
import Documents
import Fleece
import Storage
import Touchstone
import Views

/// Writes the answers of `_all_docs` and `_design_docs`.
///
/// Documents are read in slices of half a mebibyte, each from a snapshot of its own, and no snapshot is kept while the client takes a slice.
/// So a slow client doesn't keep an engine from using freed space again. An answer of one slice shows one moment. A longer one shows
/// each document at most once, as it was at some moment of the answer; the counts are those of its beginning.
struct DocumentList {
  /// What is listed.
  enum Kind: Sendable {
    case all
    case design
  }

  /// A slice ends when it has this many bytes.
  private static let sliceBytes = 512 << 10

  private let call: DatabaseCall
  private let kind: Kind
  private let options: ListOptions
  private let ranks: EntryRanks
  private let attachments: AttachmentContents

  init(_ call: DatabaseCall, _ kind: Kind, _ options: ListOptions) {
    self.call = call
    self.kind = kind
    self.options = options
    ranks = call.service.watches.watch(call.database).ranks
    attachments = AttachmentContents(call.database)
  }

  /// A part of the answer, and what comes behind it.
  private final class Slice {
    var text = JSONWriter(capacity: 4 << 10)
    var hasBegun = false
    var hasRows = false
    /// The last ID that was written.
    var last: [UInt8]?
    var nextKey = 0
    var skip: Int
    var left: Int
    var isDone = false

    init(_ options: ListOptions) {
      skip = options.skip
      left = options.limit
    }

    func append(_ text: StaticString) {
      text.withUTF8Buffer { self.text.append(json: UnsafeRawBufferPointer($0)) }
    }

    func beginRow() {
      if hasRows { append(",\r\n") }
      hasRows = true
    }

    var isFull: Bool { text.count >= DocumentList.sliceBytes }
  }

  /// Writes the object with the rows, without a line feed.
  func write(to output: AnswerOutput) throws {
    let slice = Slice(options)
    while !slice.isDone {
      try call.checkWanted()
      let (hasBegun, hasRows, skip, left, nextKey) = (
        slice.hasBegun, slice.hasRows, slice.skip, slice.left, slice.nextKey
      )
      let last = slice.last
      try call.database.replicating { store in
        try store.read(attempts: DocumentStore.defaultAttempts) { snapshot in
          // The snapshot may expire, and then it all begins again.
          slice.text = JSONWriter(capacity: Self.sliceBytes + (64 << 10))
          attachments.begin()
          (slice.hasBegun, slice.hasRows, slice.skip, slice.left) = (hasBegun, hasRows, skip, left)
          (slice.last, slice.nextKey, slice.isDone) = (last, nextKey, false)
          if !hasBegun { try begin(snapshot, slice) }
          if let keys = options.keys {
            try write(keys, snapshot, slice)
          } else {
            try writeRange(snapshot, slice)
          }
        }
      }
      if slice.isDone { slice.append("\r\n]}") }
      slice.text.withBytes { bytes in output.write { $0.append(json: bytes) } }
      slice.text = JSONWriter(capacity: 4 << 10)
      try output.step()
    }
  }

  private func begin(_ snapshot: DocumentSnapshot, _ slice: Slice) throws {
    slice.hasBegun = true
    let counts = try counts(snapshot)
    slice.append("{\"total_rows\":")
    slice.text.append(Int64(counts.total))
    slice.append(",\"offset\":")
    if let offset = counts.offset { slice.text.append(Int64(offset)) } else { slice.text.appendNull() }
    if options.includesSequence {
      slice.append(",\"update_seq\":")
      slice.text.append(string: call.database.couchDBSequences.text(try snapshot.lastSequence))
    }
    slice.append(",\"rows\":[\r\n")
  }

  // MARK: Counts

  private func counts(_ snapshot: DocumentSnapshot) throws -> (total: Int, offset: Int?) {
    let total = try rank(nil, snapshot)
    guard options.keys == nil else { return (total, nil) }
    let before: Int
    switch (options.start, options.isDescending) {
    case (.none, _), (.beforeAll, false): before = 0
    case (.beforeAll, true): before = total
    case (.id(let id), false): before = try rank(id, snapshot)
    case (.id(let id), true): before = try total - rank(id + [0], snapshot)
    }
    let (offset, overflows) = before.addingReportingOverflow(options.skip)
    return (total, overflows ? total : min(total, offset))
  }

  /// The number of listed documents with lower IDs, or of all.
  private func rank(_ id: [UInt8]?, _ snapshot: DocumentSnapshot) throws -> Int {
    switch (kind, id) {
    case (.all, nil): return try snapshot.documentCount
    case (.all, let id?): return try ranks.count(of: .documents, before: id, in: snapshot)
    case (.design, _):
      var range = KeyRange.prefix(DocumentID.designPrefix)
      if let id {
        if !DocumentID.designPrefix.lexicographicallyPrecedes(id) { return 0 }
        if id.starts(with: DocumentID.designPrefix) { range.upper = .exclusive(id) }
      }
      var count = 0
      try snapshot.forEachKey(of: .documents, in: range) { _ in
        count += 1
        return true
      }
      return count
    }
  }

  // MARK: Ranges

  /// The range of IDs behind those that are written; nil if there are none.
  private func range(after last: [UInt8]?) -> KeyRange? {
    let (low, high) = options.isDescending ? (options.end, options.start) : (options.start, options.end)
    let includesLow = !options.isDescending || options.includesEnd
    let includesHigh = options.isDescending || options.includesEnd
    var range = KeyRange.all
    switch low {
    case .none, .beforeAll: break
    case .id(let id): range.lower = includesLow ? .inclusive(id) : .exclusive(id)
    }
    switch high {
    case .none: break
    case .beforeAll: return nil
    case .id(let id): range.upper = includesHigh ? .inclusive(id) : .exclusive(id)
    }
    if kind == .design { range = range.intersection(prefix: DocumentID.designPrefix) }
    if let prefix = call.documentPrefix { range = range.intersection(prefix: prefix) }
    if let last {
      if options.isDescending { range.upper = .exclusive(last) } else { range.lower = .exclusive(last) }
    }
    return range
  }

  private func writeRange(_ snapshot: DocumentSnapshot, _ slice: Slice) throws {
    guard slice.left > 0, var range = range(after: slice.last) else {
      slice.isDone = true
      return
    }
    let order: ScanOrder = options.isDescending ? .descending : .ascending
    if slice.skip > 0 {
      // Skipped documents aren't read.
      var first: [UInt8]?
      try snapshot.forEachKey(of: .documents, in: range, order: order) { id in
        if slice.skip == 0 {
          first = [UInt8](copying: id)
          return false
        }
        slice.skip -= 1
        return true
      }
      guard let first else {
        slice.isDone = true
        return
      }
      if options.isDescending { range.upper = .inclusive(first) } else { range.lower = .inclusive(first) }
    }
    let writer = try documentWriter(snapshot)
    var goesOn = true
    try snapshot.forEachDocument(in: range, order: order) { document in
      try append(document, isDeleted: false, writer, slice)
      slice.left -= 1
      if slice.left == 0 { return false }
      guard slice.isFull else { return true }
      slice.last = [UInt8](copying: document.idBytes)
      goesOn = false
      return false
    }
    slice.isDone = goesOn
  }

  // MARK: Keys

  private func write(_ keys: [[UInt8]], _ snapshot: DocumentSnapshot, _ slice: Slice) throws {
    let writer = try documentWriter(snapshot)
    while slice.nextKey < keys.count, slice.left > 0 {
      let key = keys[options.isDescending ? keys.count - 1 - slice.nextKey : slice.nextKey]
      slice.nextKey += 1
      if slice.skip > 0 {
        slice.skip -= 1
        continue
      }
      slice.left -= 1
      let isFound = try JSONValue(body: key).string.map { id in
        // Keys of other partitions aren't looked for.
        if let prefix = call.documentPrefix, !id.utf8.starts(with: prefix) { return false }
        return try snapshot.withDocument(Array(id.utf8).span.bytes, includeDeleted: true) {
          try append($0, isDeleted: $0.isDeleted, writer, slice)
        } != nil
      }
      if isFound != true {
        slice.beginRow()
        slice.append("{\"key\":")
        key.withUnsafeBytes { slice.text.append(json: $0) }
        slice.append(",\"error\":\"not_found\"}")
      }
      if slice.isFull { return }
    }
    slice.isDone = true
  }

  // MARK: Rows

  private func documentWriter(_ snapshot: DocumentSnapshot) throws -> CouchDBDocumentWriter? {
    guard options.includesDocuments else { return nil }
    return try CouchDBDocumentWriter(snapshot, options.document, contents: attachments.reader)
  }

  private func append(
    _ document: DocumentView, isDeleted: Bool, _ writer: CouchDBDocumentWriter?, _ slice: Slice
  ) throws {
    slice.beginRow()
    slice.append("{\"id\":")
    document.idBytes.withUnsafeBytes { slice.text.append(string: $0) }
    slice.append(",\"key\":")
    document.idBytes.withUnsafeBytes { slice.text.append(string: $0) }
    slice.append(",\"value\":{\"rev\":\"")
    try slice.text.append { (text: inout ByteBuffer) throws in try document.appendRevisionID(to: &text) }
    slice.append(isDeleted ? "\",\"deleted\":true}" : "\"}")
    if let writer {
      slice.append(",\"doc\":")
      if isDeleted { slice.text.appendNull() } else { try writer.append(document, to: &slice.text) }
    }
    slice.append("}")
  }
}
