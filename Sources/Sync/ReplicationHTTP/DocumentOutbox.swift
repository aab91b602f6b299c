import Blobs
import Bytes
import Documents
import Fleece
import HTTP
import Network
import Replication
import Storage

/// Sends revisions: plain ones together in `_bulk_docs`, those with attachments one by one.
final class DocumentOutbox: @unchecked Sendable {
  /// The most documents with attachments that are sent at a time.
  static let attachedInFlight = 4
  /// The most bytes of attachments that are sent inside of JSON, to a server that takes no multipart.
  static let maximumInlineBytes: UInt64 = 32 << 20

  private let requester: DatabaseRequester
  /// Opens a blob of this side. Set before the first revision is sent.
  var openBlob: @Sendable (BlobDigest) throws -> BlobReader = { _ in throw ReplicationError.connectionEnded }

  /// Reads a stored revision of this side. Set as `openBlob`.
  var storedBody: @Sendable (String, String) throws -> SyncBody? = { _, _ in nil }
  /// Is told that the other side takes nothing. Set before the first revision is sent.
  var refused: @Sendable (ReplicationError) -> Void = { _ in }

  typealias Answered = @Sendable ([SendAnswer]) -> Void

  /// Whether the server takes multipart.
  private let takesMultipart = Lock(true)
  private let attached = JobLimit(attachedInFlight)

  init(_ requester: DatabaseRequester) { self.requester = requester }

  /// Sends revisions. `ancestors` are those that the other side has, by the place of the revision.
  func send(_ revisions: [OutgoingRevision], _ ancestors: [[String]], _ answered: @escaping Answered) {
    var plain: [OutgoingDocument] = []
    for (index, revision) in revisions.enumerated() {
      do {
        let document = try OutgoingDocument(
          index, revision.revision, ancestors[index], storedBody: storedBody)
        if let closed = revision.closes, let tombstone = OutgoingDocument(closing: closed, of: document.id) {
          plain.append(tombstone)
        }
        if document.attachments.isEmpty { plain.append(document) } else { sendAttached(document, answered) }
      } catch { answered([Self.answer(index, ReplicationError(error))]) }
    }
    if !plain.isEmpty {
      sendTogether(plain[...]) { answers in
        answered(answers.filter { $0.index != OutgoingDocument.unanswered })
      }
    }
  }

  // MARK: Together

  /// Sends documents without attachments in one request, or in several if the server takes no such long one.
  func sendTogether(_ documents: ArraySlice<OutgoingDocument>, _ answered: @escaping Answered) {
    var body: [UInt8] = Array("{\"new_edits\":false,\"docs\":[".utf8)
    body.reserveCapacity(documents.reduce(64) { $0 + $1.text.count + 1 })
    for (index, document) in documents.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body.append(contentsOf: document.text)
    }
    body.append(contentsOf: "]}".utf8)
    requester.ask(requester.request("POST", "_bulk_docs", json: body)) { [self] result in
      let answer: HTTPClientAnswer
      switch result {
      case .failure(let error): return answered(documents.map { Self.answer($0.index, error) })
      case .success(let value): answer = value
      }
      switch answer.status {
      case 200..<300: answered(Self.answers(answer, documents))
      // One of them makes the server refuse all: they are sent in halves, until it is alone.
      case 400, 409, 412, 413, 415, 417:
        guard documents.count > 1 else {
          return answered(documents.map { Self.refusal($0.index, answer) })
        }
        let middle = documents.startIndex + documents.count / 2
        sendTogether(documents[..<middle], answered)
        sendTogether(documents[middle...], answered)
      // The whole database is closed for this user: no document was refused by itself.
      case 401, 403, 404: refused(answer.error("sending documents"))
      default:
        let error = answer.error("sending documents")
        guard error.isTransient else { return refused(error) }
        answered(documents.map { SendAnswer($0.index, error) })
      }
    }
  }

  /// Only these say that a document is refused for good, or the name of the error that its ID is no ID there. Any other failure
  /// leaves it to the next run.
  private static func answer(_ index: Int, _ error: ReplicationError?, named name: String? = nil)
    -> SendAnswer
  {
    let isRefused =
      error.map { $0.domain == .http && [401, 403, 413].contains($0.code) } ?? false
      || name == "illegal_docid"
    return SendAnswer(index, error, isUndone: error != nil && !isRefused)
  }

  /// What an answer that refuses one document says of it.
  private static func refusal(_ index: Int, _ answer: HTTPClientAnswer) -> SendAnswer {
    // So say servers of the CouchDB family what is wrong.
    if let name = answer.json?["error"].string {
      let error = answer.error("sending the document")
      // Nor does CouchDB send these again: the server takes no such type, or no attachment of such a name.
      let reason = answer.json?["reason"].string ?? ""
      if answer.status == 415 || name == "bad_request" && reason.hasPrefix("Attachment name ") {
        return SendAnswer(index, error)
      }
      return Self.answer(index, error, named: name)
    }
    // A proxy has a limit of its own, which may change. Another try at once doesn't help.
    if answer.status == 413 { return SendAnswer(index, answer.error("sending the document"), isUndone: true) }
    return Self.answer(index, unreadable(answer))
  }

  /// The error of an answer that no server of the family gives, but a proxy that fails. It says nothing about the
  /// documents, so they stay undone until a later session.
  private static func unreadable(_ answer: HTTPClientAnswer) -> ReplicationError {
    ReplicationError(.http, 502, "sending documents: the answer \(answer.status) can't be read")
  }

  /// The answers, of which the server names only the failures.
  private static func answers(_ answer: HTTPClientAnswer, _ documents: ArraySlice<OutgoingDocument>)
    -> [SendAnswer]
  {
    guard let items = answer.json?.array, items.allSatisfy({ $0["id"].string != nil }) else {
      let error = unreadable(answer)
      return documents.map { SendAnswer($0.index, error) }
    }
    var failures: [ByteString: [(revision: String?, error: ReplicationError, name: String?)]] = [:]
    for item in items where !item["error"].isNull {
      guard let id = item["id"].string else { continue }
      failures[ByteString(id), default: []].append(
        (item["rev"].string, .document(item), item["error"].string))
    }
    return documents.map { document in
      let failure = failures[ByteString(document.id)]?.first { failure in
        failure.revision.map { $0.hasSameBytes(as: document.revision) } ?? true
      }
      return Self.answer(document.index, failure?.error, named: failure?.name)
    }
  }

  // MARK: One by one

  private func sendAttached(_ document: OutgoingDocument, _ answered: @escaping Answered) {
    attached.enqueue { [self] ended in
      put(document, sendsAll: false) { answer in
        answered([answer])
        ended()
      }
    }
  }

  /// Saves a document with its attachments. `sendsAll`: also those that the server should have.
  private func put(
    _ document: OutgoingDocument, sendsAll: Bool, _ done: @escaping @Sendable (SendAnswer) -> Void
  ) {
    let index = document.index
    // CouchDB 3.5 never answers to several parts of which the document is the only one.
    let isMultipart =
      document.attachments.contains { sendsAll || !$0.isKnown } && takesMultipart.withLock { $0 }
    let (type, content): (String, HTTPClientRequest.Body)
    do {
      if isMultipart {
        let body = try MultipartDocument(document, sendsAll: sendsAll, openBlob)
        (type, content) = ("multipart/related; boundary=\"\(body.boundary)\"", .source(body))
      } else {
        let text = try document.inlineText(sendsAll: sendsAll, openBlob)
        (type, content) = ("application/json", .bytes(text))
      }
    } catch { return done(Self.answer(index, ReplicationError(error))) }
    save(document.id, index, type: type, content) { [self] saved in
      switch saved {
      case .attachmentMissing where !sendsAll: put(document, sendsAll: true, done)
      case .typeRefused where isMultipart:
        takesMultipart.withLock { $0 = false }
        put(document, sendsAll: sendsAll, done)
      case .answered(let answer), .attachmentMissing(let answer), .typeRefused(let answer): done(answer)
      }
    }
  }

  /// What came of saving one document.
  enum Saved: Sendable {
    case answered(SendAnswer)
    /// The server lacks an attachment that it should have: 412. Perhaps it takes the document with all of them.
    case attachmentMissing(SendAnswer)
    /// It doesn't take the type: 415.
    case typeRefused(SendAnswer)
  }

  /// Saves one document, whose text and attachments `content` has.
  func save(
    _ id: String, _ index: Int, type: String, _ content: HTTPClientRequest.Body,
    _ done: @escaping @Sendable (Saved) -> Void
  ) {
    var request = requester.request("PUT", HTTPDatabaseURL.path(id), [("new_edits", "false")])
    request?.headers.append(("Content-Type", type))
    request?.body = content
    requester.ask(request) { [self] result in
      switch result {
      case .failure(let error): done(.answered(Self.answer(index, error)))
      case .success(let answer):
        switch answer.status {
        case 200..<300:
          let isStored = answer.json?["ok"].bool == true
          done(.answered(Self.answer(index, isStored ? nil : Self.unreadable(answer))))
        case 412: done(.attachmentMissing(Self.refusal(index, answer)))
        case 415: done(.typeRefused(Self.refusal(index, answer)))
        case 400, 401, 403, 409, 413, 417: done(.answered(Self.refusal(index, answer)))
        default:
          let error = answer.error("sending the document")
          if !error.isTransient { refused(error) }
          done(.answered(Self.answer(index, error.isTransient ? error : Self.unreadable(answer))))
        }
      }
    }
  }
}
