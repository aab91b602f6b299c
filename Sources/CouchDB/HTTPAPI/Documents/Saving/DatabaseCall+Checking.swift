import Bytes
import Documents
import Fleece
import Touchstone
import Views

extension DatabaseCall {
  /// Throws 413 if a document is too large.
  func checkSize(_ document: IncomingDocument, reason: String) throws {
    try checkSize(document.byteCount, reason: reason)
  }

  /// Throws 413 if a document of so many bytes of JSON is too large.
  func checkSize(_ byteCount: Int, reason: String) throws {
    guard byteCount <= service.configuration.maximumDocumentBytes else {
      throw CouchDBError(413, "document_too_large", reason)
    }
  }

  /// Throws the error with which a design document, or a validation function of one, refuses a document. `history` are the revisions
  /// that the document has so far, the newest first: of one that was made elsewhere its own too. `user` is who asks, for validation
  /// functions; nil if there are none.
  func check(
    _ document: IncomingDocument, _ text: [UInt8], history: [RevisionID], isForeign: Bool,
    by user: ValidationUser?
  ) throws {
    guard let id = document.id else { return }
    if IncomingID.isDesign(id) {
      try checkDesignWriter()
      guard !document.isDeleted else { return }
      let name = String(decoding: id.utf8.dropFirst(IncomingID.designPrefix.utf8.count), as: UTF8.self)
      return try withBodyObject(of: document, text) { try database.checkDesign(name, $0) }
    }
    guard let user else { return }
    try withBodyObject(of: document, text) { body in
      let new = try ScriptedRevision(id: id, history: history, isDeleted: document.isDeleted, body)
      let old =
        try isForeign
        ? database.replaced(id, Array(history.dropFirst().prefix(1)))
        : database.replaced(id, Array(history.prefix(1)))
      try database.validate(new, replacing: old, by: user)
    }
  }

  /// Throws 403 for a document of `_replicator` that describes no replication, or that belongs to another user. Notes who has written it:
  /// the replication has that user's rights.
  func checkReplication(_ document: inout IncomingDocument, _ text: [UInt8], isForeign: Bool) throws {
    guard !IncomingID.isDesign(document.id ?? "") else { return }
    let isAdmin = try isDatabaseAdmin()
    if !isAdmin, let old = try document.id.flatMap({ try database.document($0)?.value() }) {
      try checkOwner(ReplicatorDocument.user(old))
    }
    if document.isDeleted { return }
    let owner = try withBodyObject(of: document, text) { body -> JSONValue? in
      try ReplicatorDocument.check(.object(body))
      return body[ReplicatorDocument.owner]
    }
    if !isAdmin, let owner { try checkOwner(owner.string) }
    guard owner == nil, let user = request.context.ownName else { return }
    // The ID of a revision that was made elsewhere stands for its content, so it can't get an owner.
    guard !isForeign else {
      if !isAdmin { try checkOwner(nil) }
      return
    }
    document.addedMembers = Array("\(ReplicatorDocument.owner.jsonText):\(user.jsonText)".utf8)
  }

  private func checkOwner(_ owner: String?) throws {
    guard let owner, let user = request.context.ownName, owner.hasSameBytes(as: user) else {
      throw CouchDBError(403, "forbidden", "Can't update replication documents from other users.")
    }
  }

  /// Throws CouchDB's error for a document of `_users` that isn't right, or that isn't for who asks to write. Hashes the password in it.
  func checkUser(_ document: inout IncomingDocument, _ text: [UInt8]) throws {
    guard let id = document.id, !IncomingID.isDesign(id) else { return }
    let old = try database.document(id)?.value().object
    let isDeleted = document.isDeleted
    let isAdmin = try isDatabaseAdmin()
    let body = try withBodyObject(of: document, text) { body -> JSONObject? in
      var body = body
      body["_attachments"] = nil
      try UserDocument.check(
        id, body, isDeleted: isDeleted, replacing: old, by: request.context, isAdmin: isAdmin)
      guard body["password"] != nil else { return nil }
      if isDeleted { body["password"] = nil }
      return try service.users.hashingPassword(body) { try checkWanted() }
    }
    if let body { document.replacedBody = try UserDocument.jsonText(body) }
  }

  /// Calls `use` with the body of a document, for which memory is taken meanwhile.
  func withBodyObject<Result>(
    of document: IncomingDocument, _ text: [UInt8], _ use: (JSONObject) throws -> Result
  ) throws -> Result {
    let body = document.body(text)
    return try body.withUnsafeBytes { bytes in
      try holding(JSONValue.memory(of: bytes)) {
        try use(try JSONScanner.parse(0..<bytes.count, in: bytes, nil).object ?? [:])
      }
    }
  }
}

extension Database {
  /// The leaf that a change replaces, as validation functions see it; nil if there is none, or if it is a tombstone.
  func replaced(_ id: String, _ base: [RevisionID]) throws -> ScriptedRevision? {
    guard let base = base.first else { return nil }
    return try read { snapshot in
      guard let revisions = try snapshot.revisions(of: id), let index = try revisions.index(of: base),
        revisions.isLeaf(index), !revisions.isDeleted(index)
      else { return nil }
      let history = try revisions.ancestry(of: index).map { revisions.id(of: $0) }
      return try revisions.withBody(index) { root, sharedKeys in
        try ScriptedRevision(
          id: id, history: history, root.jsonValue(sharedKeys: sharedKeys).object ?? [:])
      }
    }
  }
}

extension CouchDBError {
  /// The error of a document that wasn't saved.
  init(refused error: any Error) {
    switch error {
    case let error as CouchDBError: self = error
    case let error as DocumentError: self.init(error)
    case let error as ValidationRefusal:
      switch error.code {
      case .forbidden: self.init(403, "forbidden", error.message)
      case .unauthorized: self.init(401, "unauthorized", error.message)
      }
    case let error as ViewError where error.code == .validationFailed:
      self.init(500, Self.errorName(in: error.message) ?? "error", error.message)
    case let error as ViewError where error.code == .invalidDesign:
      self.init(500, "compilation_error", error.message)
    default: self.init(failure: error)
    }
  }

  /// The name of the error that a script has thrown: `TypeError` in `…: TypeError: x is null`.
  private static func errorName(in message: String) -> String? {
    message.split(separator: ":").map { $0.trimmed }.first {
      $0.hasSuffix("Error") && $0.utf8.allSatisfy { $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A }
    }
  }

  /// Whether the error is one of a document, which the others of a request don't share.
  static func isOfDocument(_ error: any Error) -> Bool {
    error is ValidationRefusal || error is ViewError || error is CouchDBError
      || (error as? DocumentError).map { $0.code != .invalidBody && $0.code != .damaged } ?? false
  }
}
