import Fleece
import Network
import Replication
import ReplicationNetwork
import Storage
import Transport

/// Makes the requests of a connection: to one database, with retries. Every request may be repeated, since the protocol
/// names revisions by what they are.
final class DatabaseRequester: Sendable {
  /// How often a request is sent; and one that a server refuses because there are too many.
  static let attempts = 3
  static let busyAttempts = 8
  /// The longest wait for a server that says when to come again. A longer one ends the connection, and the replicator waits.
  static let longestWait = 5.0

  let client: HTTPClient
  let database: HTTPDatabaseURL

  private struct State {
    var isClosed = false
    var next = 0
    var tasks: [Int: any HTTPTask] = [:]
  }
  private let state = Lock(State())
  private let timer = SystemTimer()

  /// The first pause in seconds before another try; each later one is twice as long.
  private let firstPause: Double

  init(_ client: HTTPClient, _ database: HTTPDatabaseURL, firstPause: Double) {
    self.client = client
    self.database = database
    self.firstPause = firstPause
  }

  /// Makes a request. Nil if the path is too long for a URL.
  func request(
    _ method: String, _ path: String, _ query: [(String, String)] = [], json: [UInt8]? = nil
  ) -> HTTPClientRequest? {
    guard let url = database.at(path, query) else { return nil }
    var request = HTTPClientRequest(method, url)
    request.headers = [("Accept", "application/json")]
    request.decoding = database.isLoopback ? .none : .decoded
    if let json {
      request.headers.append(("Content-Type", "application/json"))
      request.body = .bytes(json)
    }
    return request
  }

  /// Sends a request and collects its answer, whatever its status. Failures that may be gone soon are followed by another
  /// try, unless it is sent `once`.
  func ask(
    _ request: HTTPClientRequest?, limit: Int = 16 << 20, once: Bool = false, attempt: Int = 1,
    _ done: @escaping Completion<HTTPClientAnswer>
  ) {
    guard let request else {
      return done(.failure(ReplicationError(.http, 414, "the name is too long for a URL")))
    }
    start { client, ended in
      client.collect(request, limit: limit) { [self] result in
        ended()
        if !once, let wait = wait(result, attempt), !isClosed {
          timer.schedule(after: wait) { [self] in ask(request, limit: limit, attempt: attempt + 1, done) }
          return
        }
        done(result.mapError { ReplicationError(end: $0) })
      }
    } refused: {
      done(.failure(.connectionEnded))
    }
  }

  /// Sends a request whose answer goes to a sink. Nil if the connection is closed; then the sink isn't told.
  func send(_ request: HTTPClientRequest, into sink: any HTTPAnswerSink) -> (any HTTPTask)? {
    let task = Lock<(any HTTPTask)?>(nil)
    start { client, ended in
      let watched = EndingSink(sink, ended)
      let started = client.send(request, into: watched)
      task.withLock { $0 = started }
      return started
    } refused: {
    }
    return task.withLock { $0 }
  }

  private func start(
    _ begin: (HTTPClient, @escaping @Sendable () -> Void) -> any HTTPTask, refused: () -> Void
  ) {
    let number = state.withLock { state -> Int? in
      guard !state.isClosed else { return nil }
      state.next += 1
      return state.next
    }
    guard let number else { return refused() }
    let hasEnded = Lock(false)
    let task = begin(client) { [self] in
      hasEnded.withLock { $0 = true }
      state.withLock { $0.tasks[number] = nil }
    }
    let isClosed = state.withLock { state in
      if !hasEnded.withLock({ $0 }) { state.tasks[number] = task }
      return state.isClosed
    }
    if isClosed { task.cancel() }
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Ends all requests.
  func close() {
    let tasks = state.withLock { state in
      state.isClosed = true
      defer { state.tasks = [:] }
      return Array(state.tasks.values)
    }
    for task in tasks { task.cancel() }
  }

  /// The wait in seconds before another try, nil if there is no use in that.
  private func wait(_ result: Result<HTTPClientAnswer, TransportClose>, _ attempt: Int) -> Double? {
    let error: ReplicationError
    switch result {
    case .failure(let close): error = ReplicationError(end: close)
    case .success(let answer):
      guard answer.status >= 400 else { return nil }
      error = answer.error("")
    }
    return mayRepeat(error, after: attempt) ? max(error.retryAfter ?? 0, pause(attempt - 1)) : nil
  }

  private func pause(_ attempt: Int) -> Double { firstPause * Double(1 << min(max(attempt, 0), 6)) }

  /// Whether a request that has failed so often is sent again after this error.
  func mayRepeat(_ error: ReplicationError, after attempts: Int) -> Bool {
    let isBusy = error.domain == .http && error.code == 429
    return error.isTransient && attempts < (isBusy ? Self.busyAttempts : Self.attempts)
      && error.retryAfter ?? 0 <= Self.longestWait && !isClosed
  }

  /// Runs something after the pause that follows so many failures, or after that which the server wishes.
  func afterPause(_ attempts: Int, _ error: ReplicationError, _ body: @escaping @Sendable () -> Void) {
    timer.schedule(after: max(error.retryAfter ?? 0, pause(attempts - 1)), body)
  }
}

/// Tells when an answer has ended.
private final class EndingSink: HTTPAnswerSink {
  private let inner: any HTTPAnswerSink
  private let ended: @Sendable () -> Void

  init(_ inner: any HTTPAnswerSink, _ ended: @escaping @Sendable () -> Void) {
    self.inner = inner
    self.ended = ended
  }

  func begin(_ head: HTTPAnswerHead) { inner.begin(head) }
  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool { try inner.receive(bytes) }
  func end(_ error: TransportClose?) {
    ended()
    inner.end(error)
  }
}

extension HTTPClientAnswer {
  /// The body as JSON, nil if it isn't that.
  var json: JSONValue? { body.withUnsafeBytes { try? JSONValue(json: $0) } }

  /// The error that the status is.
  func error(_ doing: String) -> ReplicationError { .answer(head, json, doing) }
}

extension ReplicationError {
  /// The error that an answer is, with the server's reason.
  static func answer(_ head: HTTPAnswerHead, _ body: JSONValue?, _ doing: String) -> ReplicationError {
    let reason = body?["reason"].string ?? body?["error"].string ?? ""
    var error = ReplicationError(
      .http, head.status, "\(doing): \(head.status)" + (reason.isEmpty ? "" : " “\(reason.prefix(500))”"))
    error.retryAfter = head.retryAfter
    return error
  }

  /// The error that an answer about one document is. Where it isn't that of a server of the family, it says nothing of the
  /// document: a proxy or a login page has given it.
  static func ofDocument(_ head: HTTPAnswerHead, _ text: [UInt8], _ doing: String) -> ReplicationError {
    let body = text.withUnsafeBytes { try? JSONValue(json: $0) }
    guard [403, 404, 410].contains(head.status), body?["error"].string == nil else {
      return .answer(head, body, doing)
    }
    return ReplicationError(.http, 502, "\(doing): the answer \(head.status) can't be read")
  }

  /// The error of one document that an answer names.
  static func document(_ value: JSONValue) -> ReplicationError {
    let name = value["error"].string ?? ""
    let status: Int =
      switch name {
      case "unauthorized": 401
      case "forbidden": 403
      case "not_found", "missing": 404
      case "conflict": 409
      case "missing_stub": 412
      case "document_too_large", "attachment_too_large", "too_large": 413
      case "bad_request", "doc_validation", "illegal_docid", "compilation_error", "invalid_design_doc": 400
      default: value["status"].int.flatMap { (400...599).contains($0) ? Int($0) : nil } ?? 502
      }
    let reason = value["reason"].string ?? name
    return ReplicationError(.http, status, "the other side refuses it: \(reason.prefix(500))")
  }
}
