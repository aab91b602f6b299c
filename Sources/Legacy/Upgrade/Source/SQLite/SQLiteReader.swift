import Blobs
import CSQLite
import Fleece
import SQLiteLibrary

/// Reads the documents of a source one by one in the order of their numbers, with all their revisions. Bodies
/// stay in SQLite until they are asked for.
///
/// Tables are read without their indexes, so a damaged index loses nothing. SQLite sorts the revisions
/// without their bodies, in memory of a fixed size and a temporary file.
final class SQLiteReader: SourceReader {
  let source: SQLiteSource
  private let documents: Statement
  private let rows: Statement
  private let bodies: Statement
  private let attachments: Statement?
  private var hasRow: Bool
  private var spliced: [UInt8] = []

  /// The revisions of the document, newest first.
  var revisions = SourceRevisions()
  /// The number of the document in the source.
  private(set) var number = 0
  /// The time at which the document expires, in seconds since 1970.
  private(set) var expiration: Int?
  private(set) var hasInvalidExpiration = false

  init(_ source: SQLiteSource) throws {
    self.source = source
    let connection = source.connection
    do {
      documents = try connection.prepare(
        "SELECT doc_id, docid, \(source.hasExpirations ? "expiry_timestamp" : "NULL") FROM docs NOT INDEXED "
          + "ORDER BY doc_id")
      rows = try connection.prepare(
        "SELECT doc_id, sequence, revid, parent, current, deleted, typeof(json) <> 'null' FROM revs NOT INDEXED "
          + "ORDER BY doc_id, sequence DESC")
      bodies = try connection.prepare("SELECT json FROM revs WHERE sequence = ?")
      attachments = source.hasAttachmentTable ? try Self.attachmentStatement(connection) : nil
      hasRow = try rows.step()
    } catch let error as SQLiteError { throw SQLiteSource.error(error, source.location) }
  }

  deinit { close() }

  /// Finalizes the statements. Must be called before the connection is closed.
  func close() {
    for statement in [documents, rows, bodies] { statement.finalize() }
    attachments?.finalize()
  }

  private static func attachmentStatement(_ connection: Connection) throws -> Statement {
    var columns: Set<String> = []
    let info = try connection.prepare("PRAGMA table_info(attachments)")
    defer { info.finalize() }
    while try info.step() { columns.insert(info.string(1) ?? "") }
    // Without an index, each revision would need a scan of the whole table.
    let table = "temp.upgrade_attachments"
    func column(_ name: String) -> String { columns.contains(name) ? name : "NULL AS \(name)" }
    try connection.execute("PRAGMA temp_store = FILE")
    try connection.execute(
      "CREATE TEMP TABLE IF NOT EXISTS upgrade_attachments AS SELECT sequence, filename, key, "
        + ["type", "length", "revpos", "encoding", "encoded_length"].map(column).joined(separator: ", ")
        + " FROM main.attachments NOT INDEXED")
    try connection.execute(
      "CREATE INDEX IF NOT EXISTS temp.upgrade_attachments_by_sequence ON upgrade_attachments(sequence)")
    return try connection.prepare(
      "SELECT filename, key, type, length, revpos, encoding, encoded_length FROM \(table) WHERE sequence = ? "
        + "ORDER BY filename")
  }

  // MARK: Documents

  func next(_ skipped: (SkippedOfSource) throws -> Void) throws -> Bool {
    do {
      revisions.removeAll()
      guard try documents.step() else {
        while hasRow { try skipRow(skipped) }
        return false
      }
      number = documents.integer(0)
      while hasRow, rows.type(0) != SQLITE_INTEGER || rows.integer(0) < number {
        // NULL sorts before numbers. All other values sort after numbers.
        if rows.type(0) != SQLITE_INTEGER, rows.type(0) != SQLITE_NULL { break }
        try skipRow(skipped)
      }
      while hasRow, rows.type(0) == SQLITE_INTEGER, rows.integer(0) == number {
        revisions.add(
          sequence: rows.integer(1), parent: rows.isNull(3) ? nil : rows.integer(3), id: rows.utf8(2),
          isCurrent: rows.integer(4) != 0, isDeleted: rows.integer(5) != 0, hasBody: rows.integer(6) != 0)
        hasRow = try rows.step()
      }
      revisions.linkBySequence()
      switch documents.type(2) {
      case SQLITE_NULL: (expiration, hasInvalidExpiration) = (nil, false)
      case SQLITE_INTEGER where abs(documents.double(2)) < 1e15:
        (expiration, hasInvalidExpiration) = (documents.integer(2), false)
      default: (expiration, hasInvalidExpiration) = (nil, true)
      }
      return true
    } catch let error as SQLiteError { throw SQLiteSource.error(error, source.location) }
  }

  private func skipRow(_ skipped: (SkippedOfSource) throws -> Void) throws {
    try skipped(
      .orphan(sequence: rows.integer(1), revisionID: rows.string(2) ?? "", hasBody: rows.integer(6) != 0))
    hasRow = try rows.step()
  }

  var documentID: UnsafeRawBufferPointer { documents.utf8(1) }

  func documentCount() throws -> Int {
    try source.reading { try source.connection.integer("SELECT count(*) FROM docs NOT INDEXED") ?? 0 }
  }

  // MARK: Bodies

  /// Rows of the attachment table are inserted as the property of later versions.
  func withBody<Result>(_ row: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    let sequence = revisions.rows[row].sequence
    do {
      try bodies.bind(1, sequence)
      defer { bodies.reset() }
      guard try bodies.step() else { return try body(SourceText.emptyBody) }
      let bytes = bodies.type(0) == SQLITE_BLOB ? bodies.bytes(0) : bodies.utf8(0)
      return try withAttachments(sequence, bytes.isEmpty ? SourceText.emptyBody : bytes, body)
    } catch let error as SQLiteError { throw SQLiteSource.error(error, source.location) }
  }

  private func withAttachments<Result>(
    _ sequence: Int, _ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result {
    guard let attachments, bytes.first == UInt8(ascii: "{") else { return try body(bytes) }
    try attachments.bind(1, sequence)
    defer { attachments.reset() }
    guard try attachments.step() else { return try body(bytes) }
    spliced.removeAll(keepingCapacity: true)
    spliced += Array("{\"_attachments\":{".utf8)
    var isFirst = true
    repeat {
      if !isFirst { spliced.append(UInt8(ascii: ",")) }
      isFirst = false
      append(attachments)
    } while try attachments.step()
    spliced.append(UInt8(ascii: "}"))
    // If the body has such a property itself, that one is later and wins.
    let rest = bytes.dropFirst()
    let isEmpty = rest.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "}")
    if !isEmpty { spliced.append(UInt8(ascii: ",")) }
    spliced += rest
    return try spliced.withUnsafeBytes { try body($0) }
  }

  /// Appends a row of the attachment table as a member of the property.
  private func append(_ row: Statement) {
    let isCompressed = row.integer(5) == 1
    spliced += (row.string(0) ?? "").jsonText.utf8
    spliced += Array(":{\"stub\":true,\"digest\":".utf8)
    // For another number of bytes than 20, the text isn't a valid digest.
    let digest = BlobDigest(row.type(1) == SQLITE_BLOB ? row.bytes(1) : row.utf8(1))?.text ?? "sha1-"
    spliced += digest.jsonText.utf8
    if let type = row.string(2) {
      spliced += Array(",\"content_type\":".utf8)
      spliced += type.jsonText.utf8
    }
    if !row.isNull(3) { spliced += Array(",\"length\":\(max(0, row.integer(3)))".utf8) }
    if !row.isNull(4) { spliced += Array(",\"revpos\":\(max(0, row.integer(4)))".utf8) }
    if isCompressed {
      spliced += Array(",\"encoding\":\"gzip\"".utf8)
      if !row.isNull(6) { spliced += Array(",\"encoded_length\":\(max(0, row.integer(6)))".utf8) }
    }
    spliced.append(UInt8(ascii: "}"))
  }
}
