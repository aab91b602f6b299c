import Fleece
import HTTP
import Network
import Replication
import Storage
import Transport

/// Sends documents with attachments from one server to another one: reads a document with the bytes of its
/// attachments as multipart/related, or as JSON, and saves these bytes there as they are, but for what
/// `RelayedText` says.
///
/// An answer waits in a `SpooledBody` until it is whole. So a request may be sent again, and its length is
/// known: CouchDB takes no multipart without one.
final class AttachedRelay: Sendable {
  /// The most documents at a time.
  static let documentsInFlight = 4

  /// How a document is read and saved.
  private struct Form {
    /// Whether the target takes multipart.
    var isMultipart: Bool
    /// Revisions that the target has, whose attachments needn't go again.
    var ancestors: [String]
    var attempts = 0
  }

  private let source: DatabaseRequester
  private let sourceFailed: @Sendable (ReplicationError) -> Void
  private let target: HTTPPeer
  private let documents = JobLimit(documentsInFlight)
  private let takesMultipart = Lock(true)
  /// The threads that may wait for the disk.
  private let disk = Workers(maximum: 4)

  init(from source: HTTPPeer, to target: HTTPPeer) {
    self.source = source.requester
    sourceFailed = { [weak source] in source?.fail($0) }
    self.target = target
  }

  typealias Done = @Sendable (RelayOutcome.Result) -> Void

  /// Sends the document that has come without its attachments. `ancestors` are revisions that the target has.
  func send(_ item: ArrivedRevision, _ ancestors: [String], _ done: @escaping Done) {
    documents.enqueue { [self] ended in
      let form = Form(isMultipart: takesMultipart.withLock { $0 }, ancestors: ancestors)
      read(item, form) { result in
        done(result)
        ended()
      }
    }
  }

  // MARK: Reading

  private func request(_ document: WireDocument, _ form: Form) -> HTTPClientRequest? {
    var query = [("rev", document.revision), ("revs", "true"), ("attachments", "true")]
    // Compressed ones stay so. In JSON they are decoded.
    if form.isMultipart { query.append(("att_encoding_info", "true")) }
    let path = HTTPDatabaseURL.path(document.id)
    let ancestors = DocumentQuery.newest(form.ancestors)
    var request = ancestors.flatMap { source.request("GET", path, query + [("atts_since", $0)]) }
    if request == nil { request = source.request("GET", path, query) }
    request?.headers = [
      ("Accept", form.isMultipart ? "multipart/related, application/json;q=0.5" : "application/json")
    ]
    request?.decoding = .none
    return request
  }

  private func read(_ item: ArrivedRevision, _ form: Form, _ done: @escaping Done) {
    guard let request = request(item.document, form) else {
      return done(
        .failed(ReplicationError(.http, 414, "the document's ID is too long for a URL"), isUndone: true))
    }
    let text = RelayedText(id: item.document.id, revision: item.document.revision)
    let body = SpooledBody(text, limit: item.document.longestText) { [self] body, error in
      if let error { return failed(error, item, form, done) }
      switch body.head.status {
      case 200: save(item, body, form, done)
      default:
        let error = ReplicationError.ofDocument(body.head, body.errorText, "reading a document")
        // Another one has taken its place, or the user may not read it.
        if error.domain == .http, [403, 404, 410].contains(error.code) { return done(.unavailable) }
        failed(error, item, form, done)
      }
    }
    if LaneSink.send(request, by: source, into: body, on: disk) == nil, source.isClosed {
      done(.failed(.connectionEnded, isUndone: true))
    }
  }

  private func failed(
    _ error: ReplicationError, _ item: ArrivedRevision, _ form: Form, _ done: @escaping Done
  ) {
    var next = form
    next.attempts += 1
    guard source.mayRepeat(error, after: next.attempts) else {
      // The whole database is closed for this user, or there is no connection: the others won't fare better.
      if error.domain != .http && error.isTransient || error.domain == .http && error.code == 401 {
        sourceFailed(error)
      }
      return done(.failed(error, isUndone: true))
    }
    let again = next
    source.afterPause(again.attempts, error) { [self] in read(item, again, done) }
  }

  // MARK: Saving

  private func save(_ item: ArrivedRevision, _ body: SpooledBody, _ form: Form, _ done: @escaping Done) {
    let type = body.head.headers.first("content-type") ?? "application/json"
    target.save(item.document.id, type: type, body) { [self] outcome in
      switch outcome {
      case .answered(let answer): done(answer.outcome)
      // What it had is gone.
      case .attachmentMissing(let answer):
        guard !form.ancestors.isEmpty else { return done(answer.outcome) }
        read(item, Form(isMultipart: form.isMultipart, ancestors: []), done)
      case .typeRefused(let answer):
        guard form.isMultipart, HTTPMediaType(type).name != "application/json" else {
          return done(answer.outcome)
        }
        takesMultipart.withLock { $0 = false }
        read(item, Form(isMultipart: false, ancestors: form.ancestors), done)
      }
    }
  }
}

extension WireDocument {
  /// The most bytes that it may have with all its attachments, in JSON or in several parts. A document that
  /// names an attachment without a length has the bound of such an attachment.
  fileprivate var longestText: UInt64 {
    var bytes = UInt64(DocumentFetch.maximumItemBytes)
    for (name, value) in attachments ?? [:] {
      let longest = AttachmentEntry(value)?.lengths.max() ?? AttachmentEntry.maximumBytes
      let inText = min(longest, AttachmentEntry.maximumBytes) / 3 * 4
      bytes += inText + UInt64(name.utf8.count) * 4 + 4_096
    }
    return bytes
  }
}
