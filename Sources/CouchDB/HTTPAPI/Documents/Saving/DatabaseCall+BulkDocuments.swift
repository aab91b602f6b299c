import HTTP
import Bytes
import Documents
import Fleece
import Views

extension DatabaseCall {
  /// The most documents in one request, as in CouchDB.
  static let maximumBulkCount = 10_000

  /// The answer to `_bulk_docs`.
  func bulkDocumentsAnswer() throws -> HTTPAnswer {
    try checkContentType()
    try checkWritable()
    let text = try bodyBytes(isReadInPieces: true)
    var bulk = try text.withUnsafeBytes { try BulkDocuments($0, request.memory) }
    if bulk.isAllOrNothing { return try allOrNothingAnswer(bulk) }
    let isForeign = !bulk.newEdits
    var claims: [NewAttachments] = []
    do {
      claims.reserveCapacity(bulk.documents.count)
      for index in bulk.documents.indices {
        try prepare(&bulk.documents[index], isForeign: isForeign)
      }
      let hasAttachments = bulk.documents.contains { $0.attachments != nil }
      if hasAttachments {
        for index in bulk.documents.indices {
          try checkWanted()
          claims.append(try NewAttachments(self))
          guard !IncomingID.isLocal(bulk.documents[index].id ?? "") else { continue }
          try settleAttachments(of: &bulk.documents[index], text, isForeign: isForeign, &claims[index])
        }
      }
    } catch {
      for index in claims.indices { claims[index].discard() }
      throw error
    }
    let results = try save(bulk.documents, text, isForeign: isForeign, claims: &claims)
    return bulkAnswer(bulk.documents, results, isForeign: isForeign)
  }

  private func prepare(_ document: inout IncomingDocument, isForeign: Bool) throws {
    let id = document.id ?? DocumentUUID.make()
    document.id = id
    try checkID(id)
    try checkSize(document, reason: id)
    if isForeign, !IncomingID.isLocal(id) || document.revision == nil { _ = try document.foreignHistory() }
  }

  private func bulkAnswer(_ documents: [IncomingDocument], _ results: [SaveResult], isForeign: Bool)
    -> HTTPAnswer
  {
    var json = JSONWriter(capacity: documents.count * 96 + 16)
    json.append(literal: "[")
    var isFirst = true
    for index in isForeign ? Self.ordered(documents) : Array(documents.indices) {
      let (document, result) = (documents[index], results[index])
      if isForeign, case .success = result { continue }
      if !isFirst { json.append(literal: ",") }
      isFirst = false
      let id = document.id ?? ""
      switch result {
      case .success(let revision): Self.append(saved: id, revision, to: &json)
      case .failure(let error):
        let revision = isForeign ? (try? document.foreignHistory())?.first : nil
        Self.append(failed: id, revision, error, to: &json)
      }
    }
    json.append(literal: "]\n")
    var text: [UInt8] = []
    json.write(to: &text)
    return .json(text: text, status: 201)
  }

  private static func append(
    failed id: String, _ revision: String?, _ error: CouchDBError, to json: inout JSONWriter
  ) {
    json.append(literal: "{\"id\":")
    json.append(string: id)
    if let revision {
      json.append(literal: ",\"rev\":")
      json.append(string: revision)
    }
    json.append(literal: ",\"error\":")
    json.append(string: error.error)
    json.append(literal: ",\"reason\":")
    json.append(string: error.reason)
    json.append(literal: "}")
  }

  /// CouchDB hasn't had all_or_nothing since 2.0.
  private func allOrNothingAnswer(_ bulk: BulkDocuments) throws -> HTTPAnswer {
    var json = JSONWriter()
    json.append(literal: "[")
    for (index, document) in bulk.documents.enumerated() {
      if index > 0 { json.append(literal: ",") }
      let error = CouchDBError(417, "not_implemented", "all_or_nothing is not supported")
      Self.append(failed: document.id ?? "", document.revision?.text ?? "0-", error, to: &json)
    }
    json.append(literal: "]\n")
    var text: [UInt8] = []
    json.write(to: &text)
    return .json(text: text, status: 417)
  }
}

/// The body of `_bulk_docs`.
private struct BulkDocuments {
  var documents: [IncomingDocument] = []
  var newEdits = true
  var isAllOrNothing = false

  /// Throws 400 if it isn't an object with documents, and 413 if there are too many.
  init(_ text: UnsafeRawBufferPointer, _ memory: RequestMemory?) throws {
    var scanner = JSONScanner(text)
    guard scanner.kind == UInt8(ascii: "{") else {
      _ = try JSONScanner.parse(0..<text.count, in: text, memory)
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    var hasDocuments = false
    try scanner.object { scanner, member in
      if try JSONScanner.isNamed("docs", member, in: text) {
        hasDocuments = true
        try readDocuments(&scanner, memory)
        return
      }
      let value = try JSONScanner.parse(scanner.value(), in: text, memory)
      if try JSONScanner.isNamed("new_edits", member, in: text) {
        guard let flag = value.bool else {
          throw CouchDBError(400, "bad_request", "`new_edits` parameter must be a boolean.")
        }
        newEdits = flag
      } else if try JSONScanner.isNamed("all_or_nothing", member, in: text) {
        isAllOrNothing = value.bool == true
      }
    }
    try scanner.finish()
    guard hasDocuments else {
      throw CouchDBError(400, "bad_request", "POST body must include `docs` parameter.")
    }
  }

  private mutating func readDocuments(_ scanner: inout JSONScanner, _ memory: RequestMemory?) throws {
    documents = []
    guard scanner.kind == UInt8(ascii: "[") else {
      _ = try JSONScanner.parse(scanner.value(), in: scanner.text, memory)
      throw CouchDBError(400, "bad_request", "`docs` parameter must be an array.")
    }
    try scanner.array { scanner in
      guard documents.count < DatabaseCall.maximumBulkCount else {
        throw CouchDBError(
          413, "max_bulk_docs_count_exceeded", String(DatabaseCall.maximumBulkCount))
      }
      documents.append(try IncomingDocument(&scanner, memory))
    }
  }
}
