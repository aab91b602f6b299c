import HTTP
import Bytes
import Documents
import Fleece
import Views

extension DatabaseCall {
  /// The answer to `_revs_diff`: for each document which of some revisions aren't known here, and leaves that may be their ancestors.
  func revisionsDifferenceAnswer() throws -> HTTPAnswer {
    var results = JSONObject()
    for (id, missing, leaves) in try missingRevisions() {
      var result: JSONObject = ["missing": .array(missing.map { .string($0.text) })]
      let highest = missing.map(\.generation).max() ?? 0
      let ancestors = leaves.filter { $0.generation < highest }
      if !ancestors.isEmpty {
        result["possible_ancestors"] = .array(ancestors.map { .string($0.description) })
      }
      results[id] = .object(result)
    }
    return try .json(.object(results))
  }

  /// The answer to `_missing_revs`: for each document which of some revisions aren't known here.
  func missingRevisionsAnswer() throws -> HTTPAnswer {
    var results = JSONObject()
    for (id, missing, _) in try missingRevisions() {
      results[id] = .array(missing.map { .string($0.text) })
    }
    return try .json(["missing_revs": .object(results)])
  }

  /// The revisions of the request that aren't known here, by document and with the leaves of that. Documents that lack none are left out.
  private func missingRevisions() throws -> [(
    id: String, missing: [IncomingDocument.Revision], leaves: [RevisionID]
  )] {
    try checkContentType()
    let wanted = try revisionLists()
    return try database.read { snapshot in
      try wanted.compactMap { id, list in
        try checkWanted()
        let revisions = try snapshot.revisions(of: id)
        let missing = try list.filter { try !Self.isKnown($0, revisions) }
        guard !missing.isEmpty else { return nil }
        return (
          id, missing, revisions.map { revisions in revisions.leaves.map { revisions.id(of: $0) } } ?? []
        )
      }
    }
  }

  private static func isKnown(_ revision: IncomingDocument.Revision, _ revisions: DocumentRevisions?) throws
    -> Bool
  {
    guard let revisions, let id = revision.id else { return false }
    return try revisions.index(of: id) != nil
  }

  /// The most revisions in one request.
  private static let maximumRevisions = 1_000_000

  /// The memory that a document of the request takes until the answer is made, in bytes, and a revision of it.
  private static let listBytes = 512
  private static let revisionBytes = 256

  /// The body of the request: an object of lists of revisions by document, in its order.
  func revisionLists() throws -> [(id: String, revisions: [IncomingDocument.Revision])] {
    let body = try bodyBytes()
    try JSONValue.checkCount(body)
    let memory = request.memory
    return try body.withUnsafeBytes { text in
      var scanner = JSONScanner(text)
      guard scanner.kind == UInt8(ascii: "{") else {
        _ = try JSONScanner.parse(0..<text.count, in: text, nil)
        throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
      }
      var lists: [(id: String, revisions: [IncomingDocument.Revision])] = []
      var count = 0
      try scanner.object { scanner, member in
        let id = try JSONScanner.name(member, in: text)
        guard let items = try JSONScanner.parse(scanner.value(), in: text, nil).array else {
          throw CouchDBError(400, "bad_request", "the revisions of a document must be an array")
        }
        count += items.count
        guard count <= Self.maximumRevisions else {
          throw CouchDBError(
            413, "too_large", "the request names more than \(Self.maximumRevisions) revisions")
        }
        try memory?.hold(Self.listBytes + items.count * Self.revisionBytes)
        let revisions = try items.map { item in
          guard let text = item.string else { throw CouchDBError.invalidRevision }
          return try IncomingDocument.Revision(text)
        }
        lists.append((id, revisions))
      }
      try scanner.finish()
      return lists
    }
  }
}
