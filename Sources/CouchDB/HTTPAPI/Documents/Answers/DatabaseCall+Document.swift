import Bytes
import Documents
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// The answer to `GET` and `HEAD` of a document.
  func readDocument(_ id: String) throws -> HTTPAnswer {
    guard !query.items.isEmpty else { return try readCurrent(id) }
    let options = try RevisionOptions(query)
    switch options.choice {
    case .current, .one: return try readOne(id, options)
    case .leaves, .some: return try readSeveral(id, options)
    }
  }

  /// The current revision, without options: the record is read once, and written from where it is.
  private func readCurrent(_ id: String) throws -> HTTPAnswer {
    guard let document = try storable(id, { try database.document(id) }) else {
      let isDeleted =
        try storable(id) { try database.read { try $0.document(id, includeDeleted: true) } } != nil
      throw isDeleted ? CouchDBError.deleted : CouchDBError.missing
    }
    let revision = document.revisionID.description
    let tag = "\"\(revision)\""
    if request.matches(tag) { return HTTPAnswer(status: 304, headers: [.init("ETag", tag)]) }
    var json = JSONWriter(capacity: 4096)
    json.append(literal: "{\"_id\":")
    json.append(string: document.id)
    json.append(literal: ",\"_rev\":\"")
    json.append(raw: revision)
    json.append(literal: "\"")
    let attachments = try document.withBody { try RevisionRenderer.append(body: $0, $1, to: &json) }
    if !attachments.isEmpty {
      json.append(literal: ",\"_attachments\":")
      let placed = attachments.map { $0.placed(at: document.revisionID.generation) }
      json.append(json: StoredAttachment.json(placed, withEncoding: false))
    }
    json.append(literal: "}\n")
    var text: [UInt8] = []
    json.write(to: &text)
    return .json(text: text, headers: [.init("ETag", tag)])
  }

  /// Runs `body`. Nil for an ID that no document can have.
  private func storable<Found>(_ id: String, _ body: () throws -> Found?) throws -> Found? {
    do { return try body() } catch let error as DocumentError where error.code == .invalidDocumentID {
      return nil
    }
  }

  private func readOne(_ id: String, _ options: RevisionOptions) throws -> HTTPAnswer {
    let isMultipart = options.attachments && request.accepts("multipart/related")
    let renderer = try RevisionRenderer(database, options, isMultipart ? .following : .inline)
    var json = AnswerPieces()
    let (written, tag) = try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id) else { throw CouchDBError.missing }
      var index = 0
      var isCurrent = true
      if case .one(let revision) = options.choice {
        isCurrent = false
        guard let found = try revision.id.flatMap({ try revisions.index(of: $0) }) else {
          throw CouchDBError.missing
        }
        index = options.latest ? try revisions.leaves(under: found).first ?? found : found
      } else if revisions.document.isDeleted {
        throw CouchDBError.deleted
      }
      json = AnswerPieces()
      guard let written = try renderer.write(revisions, index, isCurrent: isCurrent, to: &json) else {
        throw CouchDBError.missing
      }
      return (written, "\"\(revisions.id(of: index))\"")
    }
    var headers: [HTTPHeader] = []
    if !written.hasMeta {
      if request.matches(tag) { return HTTPAnswer(status: 304, headers: [.init("ETag", tag)]) }
      headers.append(.init("ETag", tag))
    }
    guard isMultipart, !written.following.isEmpty else {
      json.append("\n")
      return HTTPAnswer(status: 200, headers: [.json] + headers, body: json.body(database))
    }
    let boundary = MultipartAnswer.boundary()
    var pieces = AnswerPieces()
    MultipartAnswer.append(json, written.following, boundary, to: &pieces)
    headers.append(.init("Content-Type", "multipart/related; boundary=\"\(boundary)\""))
    return HTTPAnswer(status: 200, headers: headers, body: pieces.body(database))
  }

  // MARK: Several revisions

  private func readSeveral(_ id: String, _ options: RevisionOptions) throws -> HTTPAnswer {
    let isMultipart = request.accepts("multipart/mixed")
    var options = options
    // Multipart is there for the attachments: CouchDB's replicator doesn't ask for them.
    if isMultipart { options.attachments = true }
    let renderer = try RevisionRenderer(database, options, isMultipart ? .following : .inline)
    let found = try database.read { snapshot in
      try RevisionSelection(snapshot.revisions(of: id), options.choice, latest: options.latest).render(
        renderer)
    }
    guard let found else { throw CouchDBError.missing }
    var pieces = AnswerPieces()
    guard isMultipart else {
      pieces.append("[")
      for (position, item) in found.enumerated() {
        if position > 0 { pieces.append(",") }
        switch item {
        case .found(_, let json, _):
          pieces.append("{\"ok\":")
          pieces.append(json)
          pieces.append("}")
        case .missing(let revision): pieces.append("{\"missing\":\(revision.jsonText)}")
        }
      }
      pieces.append("]\n")
      return HTTPAnswer(status: 200, headers: [.json], body: pieces.body(database))
    }
    let boundary = MultipartAnswer.boundary()
    pieces.append("--\(boundary)")
    for item in found {
      switch item {
      case .found(_, let json, let following):
        if following.isEmpty {
          pieces.append("\r\nContent-Type: application/json\r\n\r\n")
          pieces.append(json)
        } else {
          let inner = MultipartAnswer.boundary()
          pieces.append("\r\nContent-Type: multipart/related; boundary=\"\(inner)\"\r\n\r\n")
          MultipartAnswer.append(json, following, inner, to: &pieces)
        }
      case .missing(let revision):
        pieces.append(
          "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"missing\":\(revision.jsonText)}")
      }
      pieces.append("\r\n--\(boundary)")
    }
    pieces.append("--")
    return HTTPAnswer(
      status: 200, headers: [.init("Content-Type", "multipart/mixed; boundary=\"\(boundary)\"")],
      body: pieces.body(database))
  }
}

/// The revisions of a document that a request names.
struct RevisionSelection {
  enum Item {
    /// A revision as JSON, and the attachments that follow.
    case found(RevisionID, AnswerPieces, [StoredAttachment])
    /// A revision that isn't known, or whose body isn't stored.
    case missing(String)
  }

  private let revisions: DocumentRevisions?
  private var wanted: [Int] = []
  private var missing: [String] = []
  /// Whether the whole document is asked for.
  private let isWhole: Bool

  /// Chooses revisions, or with `latest` the leaves that descend from them.
  init(_ revisions: DocumentRevisions?, _ choice: RevisionOptions.Choice, latest: Bool) throws {
    self.revisions = revisions
    switch choice {
    case .current, .leaves:
      isWhole = true
      wanted = revisions?.leaves ?? []
    case .one(let revision):
      isWhole = false
      try choose([revision], latest: latest)
    case .some(let some):
      isWhole = false
      try choose(some, latest: latest)
    }
  }

  private mutating func choose(_ some: [IncomingDocument.Revision], latest: Bool) throws {
    var chosen: Set<Int> = []
    for revision in some {
      guard let revisions, let index = try revision.id.flatMap({ try revisions.index(of: $0) }) else {
        missing.append(revision.text)
        continue
      }
      chosen.insert(index)
    }
    wanted = Array(chosen)
    guard latest, let revisions, !chosen.allSatisfy({ revisions.isLeaf($0) }) else { return }
    wanted = try revisions.leaves.filter { try revisions.ancestry(of: $0).contains(where: chosen.contains) }
  }

  /// Writes the revisions in the order of their IDs, then those that are missing. Nil if there is no document and all of it is asked for.
  func render(_ renderer: RevisionRenderer) throws -> [Item]? {
    guard let revisions else { return isWhole ? nil : missing.map { .missing($0) } }
    var items: [Item] = []
    var missing = missing
    for index in wanted.sorted(by: { revisions.id(of: $0) < revisions.id(of: $1) }) {
      var json = AnswerPieces()
      if let written = try renderer.write(revisions, index, isCurrent: false, to: &json) {
        items.append(.found(revisions.id(of: index), json, written.following))
      } else {
        missing.append(revisions.id(of: index).description)
      }
    }
    return items + missing.map { .missing($0) }
  }
}

extension DocumentRevisions {
  /// The leaves that descend from a revision, or are it, in the order of leaves.
  func leaves(under index: Int) throws -> [Int] {
    if isLeaf(index) { return [index] }
    return try leaves.filter { try ancestry(of: $0).contains(index) }
  }
}
