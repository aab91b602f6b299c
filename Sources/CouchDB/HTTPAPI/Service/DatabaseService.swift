import Bytes
import Documents
import Fleece
import HTTP
import Logs
import Query
import Storage
import Touchstone
import Views

/// Answers the requests of clients of CouchDB over databases. It knows no sockets: requests and answers are values
/// (docs/http.md).
///
/// All calls may come from any thread.
package final class DatabaseService: Sendable {
  let configuration: DatabaseServiceConfiguration
  let catalog: any DatabaseCatalog
  let timer: any CallTimer
  let metrics = ServiceMetrics()
  /// What runs in the background.
  package let tasks = ActiveTasks()
  /// The replications that the server runs.
  let replications: ReplicationJobs
  /// Follows the documents of `_replicator`.
  let replicatorDatabase: ReplicatorDatabase
  /// Whether the server is being stopped. Requests that take long end then.
  let isStopping = Lock(false)
  /// Run what requests leave to be done.
  let workers = Workers(maximum: 2)
  /// The memory for bodies of requests.
  let memory: MemoryBudget
  /// The memory for queries.
  let queryMemory: QueryShare
  /// The temporary files for queries.
  let queryFiles: QueryShare
  /// The users of `_users`.
  package let users: UsersDatabase
  /// Ends feeds and replications of who may not read any more.
  package let rights: StandingRights
  /// Who waits for changes of which database.
  let watches: DatabaseWatches
  /// What happens to databases.
  let updates: DatabaseUpdates
  /// When it was made, by the timer.
  let began: Double
  private let knownUUID = Lock<String?>(nil)

  /// Makes a service over the databases of a catalog.
  package init(
    _ catalog: any DatabaseCatalog, _ configuration: DatabaseServiceConfiguration = .init(),
    timer: any CallTimer = SystemTimer()
  ) {
    self.catalog = catalog
    self.configuration = configuration
    self.timer = timer
    began = timer.now
    watches = DatabaseWatches(timer)
    updates = DatabaseUpdates(catalog)
    users =
      configuration.users
      ?? UsersDatabase(catalog, iterations: configuration.passwordIterations, timer: timer)
    if let rights = configuration.rights {
      self.rights = rights
    } else {
      var lookup: StandingRights.Lookup?
      if let logins = configuration.logins { lookup = { logins.context(of: $0) } }
      rights = StandingRights(users, lookup: lookup, timer: timer)
    }
    queryMemory = QueryShare(bytes: configuration.queryMemoryBytes)
    queryFiles = QueryShare(bytes: configuration.queryFileBytes)
    memory = MemoryBudget(
      bytes: configuration.bodyMemoryBytes, waitSeconds: configuration.bodyMemorySeconds)
    let finder = ReplicationFinder(
      catalog: catalog, targets: configuration.replicationTargets, logins: configuration.logins,
      hasUsers: configuration.hasUsers, rights: rights)
    replications = ReplicationJobs(finder, maximum: configuration.maximumReplications, timer: timer)
    replicatorDatabase = ReplicatorDatabase(replications, turnSeconds: configuration.turnSeconds)
  }

  deinit { stopReplications(seconds: 0) }

  /// What the root says of the server: the same after each start, as long as its databases are there.
  var uuid: String {
    knownUUID.withLock { known in
      let uuid = known ?? catalog.identity(isReadOnly: configuration.isReadOnly) ?? DocumentUUID.make()
      known = uuid
      return uuid
    }
  }

  /// Ends updates of views with scripts that requests wait for. Call it before the server is stopped.
  package func stopUpdates() { isStopping.withLock { $0 = true } }

  /// Answers a request, on this thread. It waits for files, for the body of the request, and for a client that takes the answer slowly.
  /// `respond` is called once, with a body of bytes or a stream, and may be called before the rest of the body is written.
  package func answer(_ request: consuming HTTPRequest, _ respond: @escaping @Sendable (HTTPAnswer) -> Void) {
    request.chooseMethod()
    request.body = MeteredBody(request.body, RequestMemory(memory), timer)
    let request = consume request
    let began = timer.now
    let counted: @Sendable (HTTPAnswer) -> Void = { [self, method = request.method] answer in
      metrics.count(method, answer.status, seconds: timer.now - began)
      respond(answer)
    }
    let answer = answer(to: request)
    guard let later = answer.later else { return deliver(answer, to: request, counted) }
    later.make { [self] answer in deliver(answer, to: request, counted) }
  }

  private func answer(to request: HTTPRequest) -> HTTPAnswer {
    if let preflight = configuration.crossOrigin.preflight(request) { return preflight }
    // Who hasn't logged in hears nothing of what there is, and the body isn't read.
    if request.method == "OPTIONS", request.context.isAnonymous { return .methods }
    do { return try route(request) } catch { return answer(to: error) }
  }

  /// The answer to an error that a request has led to.
  func answer(to error: any Error) -> HTTPAnswer {
    switch error {
    case let error as CouchDBError: .error(error)
    case let error as AnswerInstead: error.answer
    case let error as MethodNotAllowed: error.answer
    case let error as DocumentError: .error(CouchDBError(error))
    // It was deleted while the request was worked on.
    case let error as DatabaseError where error.code == .closed: .error(.noDatabase)
    case let error as StorageError where error.code == .closed: .error(.noDatabase)
    // Such as a view that isn't indexed yet.
    case let error as StorageError where error.code == .readOnly:
      .error(CouchDBError(403, "forbidden", "the databases are served for reading only"))
    case HTTPBodyError.tooLong:
      .error(CouchDBError(413, "too_large", "the request entity is too large"))
    case HTTPBodyError.malformed:
      .error(CouchDBError(400, "bad_request", "Request body is not properly gzipped."))
    case HTTPBodyError.clientGone, HTTPBodyError.wrongLength:
      .error(CouchDBError(400, "bad_request", "the body of the request ended early"))
    default: .error(unexpected(error))
    }
  }

  private func unexpected(_ error: any Error) -> CouchDBError {
    Log.write(.warning, .network, "HTTP", "a request failed: \(LogText.of(error))")
    return CouchDBError(failure: error)
  }

  // MARK: Delivering

  private func deliver(
    _ answer: HTTPAnswer, to request: HTTPRequest, _ respond: @escaping @Sendable (HTTPAnswer) -> Void
  ) {
    var answer = finished(answer, request)
    let compresses = self.compresses(answer, for: request)
    if compresses { answer.headers.append(.init("Vary", "Accept-Encoding")) }
    switch answer.body {
    case .stream: respond(answer)
    case .bytes(let bytes): respond(compresses ? compressed(answer, bytes) : answer)
    case .other:
      guard let body = answer.body.written else { return respond(answer) }
      deliver(
        answer, length: compresses ? nil : body.length, body.write, to: request, compresses: compresses,
        respond)
    }
  }

  private func deliver(
    _ answer: HTTPAnswer, length: Int?, _ write: (AnswerOutput) throws -> Void, to request: HTTPRequest,
    compresses: Bool, _ respond: @escaping @Sendable (HTTPAnswer) -> Void
  ) {
    var answer = answer
    let isHead = request.method == "HEAD"
    let head = answer
    let output = AnswerOutput {
      if isHead { return UnwantedBody() }
      let encoder = compresses ? GzipEncoder() : nil
      let plain = Self.begin(head, length: length, isCompressed: encoder != nil, respond)
      return encoder.map { CompressingSink(plain, $0) } ?? plain
    }
    do {
      try write(output)
      if let bytes = try output.finish() {
        answer.body = .bytes(bytes)
        respond(compresses ? compressed(answer, bytes) : answer)
      }
    } catch {
      guard output.hasBegun else { return respond(finished(self.answer(to: error), request)) }
      if isHead {
        // The rest needn't be made.
        answer.body = .stream(length: length) { $0.fail() }
        if compresses { answer.headers.append(.init("Content-Encoding", "gzip")) }
        return respond(answer)
      }
      if !(error is HTTPBodyError) {
        Log.write(.warning, .network, "HTTP", "an answer was cut off: \(LogText.of(error))")
      }
      output.fail()
    }
  }

  /// Sends the head of an answer, and waits for what takes its body.
  private static func begin(
    _ answer: HTTPAnswer, length: Int?, isCompressed: Bool, _ respond: @Sendable (HTTPAnswer) -> Void
  ) -> any HTTPBodySink {
    let waiter = BlockingWaiter<any HTTPBodySink>()
    do {
      let promise = SinkPromise(waiter)
      var answer = answer
      if isCompressed { answer.headers.append(.init("Content-Encoding", "gzip")) }
      answer.body = .stream(length: length) { promise.finish($0) }
      answer.startsAtOnce = true
      respond(answer)
    }
    return waiter.wait()
  }

  /// Adds the headers that every answer has.
  private func finished(_ answer: HTTPAnswer, _ request: HTTPRequest) -> HTTPAnswer {
    var answer = answer
    answer.headers += HTTPHeader.identity(
      of: request, bodySeconds: (request.body as? MeteredBody)?.seconds ?? 0)
    if !answer.hasHeader("Cache-Control"), Self.isCacheable(answer) {
      answer.headers.append(.init("Cache-Control", "must-revalidate"))
    }
    if request.method != "OPTIONS" { answer.headers += configuration.crossOrigin.answerHeaders(request) }
    if answer.status == 401, let challenge = challenge(request) { answer.headers.append(challenge) }
    if !answer.hasHeader("Set-Cookie"), let cookie = renewedCookie(request) { answer.headers.append(cookie) }
    return answer
  }

  /// The header that asks for a login; nil for clients that show a dialog of their own.
  private func challenge(_ request: HTTPRequest) -> HTTPHeader? {
    guard let challenge = configuration.loginChallenge, request.context.isAnonymous else { return nil }
    // Who has sent a wrong password there has asked for it in a form.
    if request.method == "POST", request.target.segments?.last == ByteString("_session"),
      request.headers.first("x-couchdb-www-authenticate") == nil
    {
      return nil
    }
    return HTTPHeader.loginChallenge(challenge, for: request.headers)
  }

  /// Whether caches may keep an answer, if they ask again each time: CouchDB says nothing of multipart bodies and of answers without one.
  private static func isCacheable(_ answer: HTTPAnswer) -> Bool {
    guard answer.status != 301, answer.status != 304 else { return false }
    // The first letter is compared alone: almost no value begins with it, and `starts` is slow.
    return !answer.headers.contains {
      $0.value.utf8.first == UInt8(ascii: "m") && $0.value.utf8.starts(with: "multipart/".utf8)
        && $0.isNamed("Content-Type")
    }
  }

  /// Whether an answer is to be compressed: JSON for a client that takes gzip. Streams go out as they come.
  private func compresses(_ answer: HTTPAnswer, for request: HTTPRequest) -> Bool {
    guard configuration.compressesAnswers, !answer.hasHeader("Content-Encoding"),
      answer.headers.contains(where: { $0.value == HTTPHeader.json.value })
    else { return false }
    if case .bytes(let bytes) = answer.body, bytes.count < Self.leastCompressedBytes { return false }
    return request.acceptsGzip
  }

  /// Answers of fewer bytes aren't compressed: that gains nothing.
  private static let leastCompressedBytes = 1_024

  private func compressed(_ answer: HTTPAnswer, _ bytes: [UInt8]) -> HTTPAnswer {
    guard bytes.count >= Self.leastCompressedBytes, let encoder = GzipEncoder() else { return answer }
    var answer = answer
    answer.body = .bytes(encoder.encode(bytes, isLast: true))
    answer.headers.append(.init("Content-Encoding", "gzip"))
    return answer
  }
}

/// Compresses what goes through it. Only the thread that writes the answer uses it.
private final class CompressingSink: HTTPBodySink, @unchecked Sendable {
  private let sink: any HTTPBodySink
  private let encoder: GzipEncoder

  init(_ sink: any HTTPBodySink, _ encoder: GzipEncoder) {
    self.sink = sink
    self.encoder = encoder
  }

  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {
    let piece = encoder.encode(bytes, isLast: false)
    if !piece.isEmpty { try sink.write(piece) }
  }

  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    let piece = encoder.encode(bytes, isLast: false)
    if piece.isEmpty { completion(nil) } else { sink.offer(piece, completion) }
  }

  func finish() {
    do {
      try sink.write(encoder.encode([], isLast: true))
      sink.finish()
    } catch { sink.fail() }
  }

  func fail() { sink.fail() }
}

/// Gives the sink of an answer to the thread that waits for it. If the answer is dropped, because its client is gone, that thread gets
/// one that takes nothing.
private final class SinkPromise: Sendable {
  private let waiter: BlockingWaiter<any HTTPBodySink>
  private let isKept = Lock(false)

  init(_ waiter: BlockingWaiter<any HTTPBodySink>) { self.waiter = waiter }

  deinit { if !isKept.withLock({ $0 }) { waiter.finish(UnwantedBody()) } }

  func finish(_ sink: any HTTPBodySink) {
    isKept.withLock { $0 = true }
    waiter.finish(sink)
  }
}

/// Takes no body: of an answer to HEAD, or for a client that is gone.
private struct UnwantedBody: HTTPBodySink {
  func write(_ bytes: [UInt8]) throws(HTTPBodyError) { throw .clientGone }
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    completion(.clientGone)
  }
  func finish() {}
  func fail() {}
}
