import CPostgres
import Glibc
import Storage
import StorageFlat

/// One connection to a server, with its prepared statements.
///
/// It never waits for ever: each answer has a deadline. After a lost or late answer it is closed, and every later call
/// throws.
///
/// `@unchecked Sendable`: one thread at a time uses it. A snapshot that several threads share has a lock for that.
final class Connection: @unchecked Sendable {
  /// What the server still has to answer before anything else can be sent.
  private enum Outstanding {
    case nothing
    /// The end of a transaction. Nobody waits for it.
    case ending
    /// The next page of a scan.
    case page(PageRequest)
  }

  let settings: PostgresSettings
  /// The connection of libpq, or nil once it is closed.
  private(set) var handle: OpaquePointer?
  /// The name of the server and its version, as it reports them.
  let server: String
  /// Whether it is PostgreSQL's own server or one with its settings.
  let hasSettings: Bool
  private var outstanding = Outstanding.nothing
  private let forks = ForkCount.register()
  /// The number of times that something was sent and its answer awaited, for tests.
  private(set) var roundTrips = 0
  /// Whether the list of keyspaces was read over this connection. What other connections have read may be of a server that was
  /// lost with its last commits.
  var hasReadCatalog = false

  /// Connects. Throws `PostgresError`.
  init(_ settings: PostgresSettings) throws {
    self.settings = settings
    let handle = try Self.connect(settings)
    self.handle = handle
    let cockroach = PQparameterStatus(handle, "crdb_version").map { String(cString: $0) }
    let version = PQparameterStatus(handle, "server_version").map { String(cString: $0) } ?? "?"
    server = cockroach ?? "PostgreSQL \(version)"
    hasSettings = cockroach == nil
    PQsetErrorVerbosity(handle, PQERRORS_DEFAULT)
    PQsetNoticeProcessor(handle, { _, _ in }, nil)
    guard PQsetnonblocking(handle, 1) == 0 else { throw lose("libpq can't work without blocking") }
    try set()
  }

  deinit { close() }

  /// Closes the connection. A second call does nothing.
  func close() {
    if case .page(let request) = outstanding { request.isLost = true }
    outstanding = .nothing
    // A forked child has the same socket: it would end its parent's session.
    if let handle, ForkCount.now == forks { PQfinish(handle) }
    handle = nil
  }

  var isClosed: Bool { handle == nil }

  // MARK: Beginning

  /// Connects to the first host that takes the connection.
  private static func connect(_ settings: PostgresSettings) throws -> OpaquePointer {
    var order = HostOrder.current(settings.location)
    var silent = 0
    while true {
      let handle = try begin(settings, order)
      do {
        guard PQstatus(handle) != CONNECTION_BAD else { throw refusal(handle) }
        if try waitForConnection(handle, settings) { return handle }
        silent += 1
        guard let other = HostOrder(behind: handle), silent < other.count else {
          throw PostgresError(nil, "the server hasn't answered in time", isLost: true)
        }
        other.keep(settings.location)
        order = other
        PQfinish(handle)
      } catch {
        PQfinish(handle)
        throw error
      }
    }
  }

  /// Begins to connect.
  private static func begin(_ settings: PostgresSettings, _ order: HostOrder?) throws -> OpaquePointer {
    // What stands behind the connection string overrides it.
    let words =
      [
        ("tcp_user_timeout", "\(settings.answerSeconds * 1_000)"),
        ("fallback_application_name", "touchstone"),
        ("dbname", settings.location.connection), ("client_encoding", "UTF8"),
      ] + (order?.words.map { ($0.name, $0.value) } ?? [])
    var keys = words.map { strdup($0.0) } + [nil]
    var values = words.map { strdup($0.1) } + [nil]
    defer { for word in keys + values { free(word) } }
    let handle = keys.withUnsafeMutableBufferPointer { keys in
      values.withUnsafeMutableBufferPointer { values in
        keys.withMemoryRebound(to: UnsafePointer<CChar>?.self) { keys in
          values.withMemoryRebound(to: UnsafePointer<CChar>?.self) { values in
            PQconnectStartParams(keys.baseAddress, values.baseAddress, 1)
          }
        }
      }
    }
    guard let handle else { throw PostgresError(nil, "libpq has no memory", isLost: true) }
    // The message of a refused connection then has its SQLSTATE, in every language.
    PQsetErrorVerbosity(handle, PQERRORS_VERBOSE)
    return handle
  }

  /// Waits for a connection. Returns false if a host doesn't answer in time. Each has the time of `connect_timeout`, or that of the
  /// settings.
  private static func waitForConnection(_ handle: OpaquePointer, _ settings: PostgresSettings) throws -> Bool
  {
    let wanted = HostOrder.settings(of: handle, ["connect_timeout"]).first.flatMap { Int($0.value) } ?? 0
    let seconds = wanted > 0 ? wanted : settings.connectSeconds
    func host() -> [String] { [PQhost(handle), PQport(handle)].map { $0.map { String(cString: $0) } ?? "" } }
    var asked = host()
    var deadline = Deadline(seconds: seconds)
    var state = PGRES_POLLING_WRITING
    while state != PGRES_POLLING_OK {
      guard state != PGRES_POLLING_FAILED else { throw refusal(handle) }
      let events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT
      guard Self.poll(handle, Int16(events), deadline) else { return false }
      state = PQconnectPoll(handle)
      if host() != asked { (asked, deadline) = (host(), Deadline(seconds: seconds)) }
    }
    return true
  }

  /// The reason why a server has refused a connection. libpq has the SQLSTATE only in the text.
  private static func refusal(_ handle: OpaquePointer) -> PostgresError {
    let lines = String(cString: PQerrorMessage(handle)).split(separator: "\n").filter {
      !$0.hasPrefix("LOCATION:")
    }
    let text = lines.joined(separator: "; ")
    let state = text.split(separator: " ").first { word in
      word.count == 6 && word.last == ":"
        && word.dropLast().allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber) }
        && word.contains { $0.isNumber }
    }.map { String($0.dropLast()) }
    return PostgresError(
      state, text, isLost: true, isAboutPassword: PQconnectionNeedsPassword(handle) != 0)
  }

  /// Sets what the engine's statements need. The server may not know all of it.
  private func set() throws {
    guard hasSettings else { return }
    var texts = [
      // A plan by the primary key, whatever the statistics say, and planned once.
      "enable_seqscan = off", "enable_bitmapscan = off", "enable_sort = off", "enable_hashjoin = off",
      "enable_mergejoin = off", "plan_cache_mode = force_generic_plan", "jit = off",
      "lock_timeout = '\(settings.lockSeconds)s'",
      // A dead client's transaction mustn't hold the lock for longer.
      "tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3",
      "synchronous_commit = \(settings.synchronousCommit)",
    ]
    if settings.isReadOnly { texts.append("default_transaction_read_only = on") }
    _ = try exchange(texts.map { .text("SET \($0)") })
  }

  /// Prepares all statements.
  func prepare() throws {
    let schema = settings.location.quotedSchema
    try begin()
    guard let handle else { throw lost() }
    PQenterPipelineMode(handle)
    for statement in Statement.allCases
    where statement.isOfHome == settings.isOfHome && (!settings.isReadOnly || statement.isForReading)
      && (hasSettings || statement != .notify)
    {
      let types = statement.types
      let isSent = PQsendPrepare(handle, statement.rawValue, statement.sql(schema), Int32(types.count), types)
      guard isSent == 1 else { throw lose(lastMessage) }
    }
    _ = try finishPipeline()
  }

  // MARK: Requests

  /// Sends a statement and returns its rows.
  func run(_ statement: Statement, _ parameters: [Parameter]) throws -> Answer {
    try begin()
    try send(statement, parameters)
    return try receive()
  }

  /// Sends requests, and returns the rows of those that aren't a `COPY`. When one fails, those behind it aren't run. A `COPY` is
  /// sent alone: a pipeline can't have one.
  func exchange(_ requests: [Request]) throws -> [Answer] {
    var answers: [Answer] = []
    var start = requests.startIndex
    for (index, request) in requests.enumerated() {
      guard case .copy(let rows) = request else { continue }
      answers += try pipeline(requests[start..<index])
      try copy(rows)
      start = index + 1
    }
    return try answers + pipeline(requests[start...])
  }

  private func pipeline(_ requests: ArraySlice<Request>) throws -> [Answer] {
    guard !requests.isEmpty else { return [] }
    try begin()
    guard let handle else { throw lost() }
    guard PQenterPipelineMode(handle) == 1 else { throw lose(lastMessage) }
    for request in requests { try send(request) }
    return try finishPipeline()
  }

  private func copy(_ rows: CopiedRows) throws {
    try begin()
    guard let handle else { throw lost() }
    let text =
      "COPY \(settings.location.quotedSchema).entries (keyspace, key, value) FROM STDIN (FORMAT binary)"
    guard PQsendQuery(handle, text) == 1 else { throw lose(lastMessage) }
    try waitForResult(Deadline(seconds: settings.answerSeconds))
    roundTrips += 1
    if let result = PQgetResult(handle) {
      if PQresultStatus(result) == PGRES_COPY_IN {
        PQclear(result)
        let isSent = rows.bytes.withUnsafeBytes { bytes in
          PQputCopyData(handle, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        guard isSent == 1, PQputCopyEnd(handle, nil) == 1 else { throw lose(lastMessage) }
      } else if let error = error(of: result) {
        _ = try? receive()
        throw error
      }
    }
    _ = try receive()
  }

  /// Sends a text, such as the end of a transaction, and lets the next request wait for the answer.
  func sendEnding(_ text: String) {
    do {
      try begin()
      guard let handle else { return }
      guard PQsendQuery(handle, text) == 1 else { throw lose(lastMessage) }
      // What isn't sent now is sent by the next request.
      PQflush(handle)
      outstanding = .ending
    } catch { close() }
  }

  /// Sends the request for a page, and lets the next call wait for the answer.
  func sendAhead(_ statement: Statement, _ parameters: [Parameter], _ request: PageRequest) throws {
    try begin()
    try send(statement, parameters)
    if let handle { PQflush(handle) }
    outstanding = .page(request)
  }

  /// Waits for what is outstanding.
  func settle() throws {
    switch outstanding {
    case .nothing: return
    case .ending:
      outstanding = .nothing
      do { _ = try receive() } catch let error as PostgresError where !error.isLost {}
    case .page(let request):
      outstanding = .nothing
      do { request.answer = try receive() } catch {
        request.isLost = true
        throw error
      }
    }
  }

  private func begin() throws {
    guard handle != nil else { throw lost() }
    try settle()
  }

  private func send(_ request: Request) throws {
    switch request {
    // It isn't part of a pipeline.
    case .copy: break
    case .prepared(let statement, let parameters): try send(statement, parameters)
    case .text(let text):
      guard let handle else { throw lost() }
      guard PQsendQueryParams(handle, text, 0, nil, nil, nil, nil, 1) == 1 else { throw lose(lastMessage) }
    }
  }

  private func send(_ statement: Statement, _ parameters: [Parameter]) throws {
    guard let handle else { throw lost() }
    let isSent = statement.withParameters(parameters) { values, lengths, formats in
      PQsendQueryPrepared(
        handle, statement.rawValue, Int32(parameters.count), values, lengths, formats, 1)
    }
    guard isSent == 1 else { throw lose(lastMessage) }
  }

  // MARK: Answers

  /// Waits for the answer to one request outside of a pipeline.
  private func receive() throws -> Answer {
    guard let handle else { throw lost() }
    roundTrips += 1
    let deadline = Deadline(seconds: settings.answerSeconds)
    var answer: Answer?
    var failure: PostgresError?
    while true {
      try waitForResult(deadline)
      guard let result = PQgetResult(handle) else { break }
      if let error = error(of: result) { failure = failure ?? error } else { answer = Answer(result) }
    }
    if PQstatus(handle) == CONNECTION_BAD {
      throw failure.map { lose($0.message, $0.state) } ?? lose(lastMessage)
    }
    if let failure { throw failure }
    guard let answer else { throw lose("the server has sent no answer") }
    return answer
  }

  /// Ends a pipeline and waits for its answers.
  private func finishPipeline() throws -> [Answer] {
    guard let handle, PQpipelineSync(handle) == 1 else { throw lose(lastMessage) }
    roundTrips += 1
    let deadline = Deadline(seconds: settings.answerSeconds)
    var answers: [Answer] = []
    var failure: PostgresError?
    while true {
      try waitForResult(deadline)
      // Nil stands between two statements.
      guard let result = PQgetResult(handle) else {
        if PQstatus(handle) == CONNECTION_BAD { break }
        continue
      }
      if PQresultStatus(result) == PGRES_PIPELINE_SYNC {
        PQclear(result)
        break
      }
      if PQresultStatus(result) == PGRES_PIPELINE_ABORTED {
        PQclear(result)
      } else if let error = error(of: result) {
        failure = failure ?? error
        if PQstatus(handle) == CONNECTION_BAD { break }
      } else {
        answers.append(Answer(result))
      }
    }
    if PQstatus(handle) == CONNECTION_BAD {
      throw failure.map { lose($0.message, $0.state) } ?? lose(lastMessage)
    }
    PQexitPipelineMode(handle)
    if let failure { throw failure }
    return answers
  }

  /// The error of a result, which is then freed. Nil if it is none.
  private func error(of result: OpaquePointer) -> PostgresError? {
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return nil
    default: break
    }
    defer { PQclear(result) }
    let state = PQresultErrorField(result, Int32(UnicodeScalar("C").value)).map { String(cString: $0) }
    let message =
      PQresultErrorField(result, Int32(UnicodeScalar("M").value)).map { String(cString: $0) }
      ?? String(cString: PQresultErrorMessage(result))
    return PostgresError(state, message, isLost: false)
  }

  /// Sends what is left to send, and waits until `PQgetResult` doesn't block.
  private func waitForResult(_ deadline: Deadline) throws {
    guard let handle else { throw lost() }
    var unsent = PQflush(handle)
    while unsent == 1 || PQisBusy(handle) == 1 {
      guard unsent >= 0 else { break }
      let events = Int16(unsent == 1 ? POLLIN | POLLOUT : POLLIN)
      guard Self.poll(handle, events, deadline) else {
        throw lose("the server hasn't answered in \(settings.answerSeconds) s")
      }
      // A lost connection ends the loop: it isn't busy any more.
      guard PQconsumeInput(handle) == 1 else { return }
      unsent = PQflush(handle)
    }
  }

  /// Waits for the socket. Returns false when the time is over.
  private static func poll(_ handle: OpaquePointer, _ events: Int16, _ deadline: Deadline) -> Bool {
    var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
    while true {
      let count = Glibc.poll(&descriptor, 1, deadline.milliseconds)
      if count > 0 { return true }
      if count < 0, errno == EINTR { continue }
      return false
    }
  }

  // MARK: Notifications

  /// What a wait for a notification has ended with.
  enum Awakening { case notified, woken, timeout }

  /// Waits for a notification, or until the descriptor `alarm` can be read, which is then read.
  func waitForNotification(or alarm: Int32, until deadline: Deadline) throws -> Awakening {
    try begin()
    while true {
      guard let handle else { throw lost() }
      guard PQconsumeInput(handle) == 1 else { throw lose(lastMessage) }
      var isNotified = false
      while let notification = PQnotifies(handle) {
        PQfreemem(notification)
        isNotified = true
      }
      if isNotified { return .notified }
      var descriptors = [
        pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0),
        pollfd(fd: alarm, events: Int16(POLLIN), revents: 0),
      ]
      let count = Glibc.poll(&descriptors, 2, deadline.milliseconds)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return .timeout }
      if descriptors[1].revents != 0 {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(alarm, &bytes, bytes.count) > 0 {}
        return .woken
      }
    }
  }

  // MARK: Failures

  private var lastMessage: String { handle.map { String(cString: PQerrorMessage($0)) } ?? "" }

  private func lost() -> PostgresError {
    PostgresError(nil, "the connection to the server was lost", isLost: true)
  }

  /// Closes the connection and returns the error.
  private func lose(_ message: String, _ state: String? = nil) -> PostgresError {
    let error = PostgresError(
      state, message.isEmpty ? "the connection to the server was lost" : message, isLost: true)
    close()
    return error
  }
}

/// The request for the next page of a scan, which is sent before the page is needed.
final class PageRequest {
  /// The maximum number of rows.
  let limit: Int
  /// The rows, once they are there.
  var answer: Answer?
  /// Whether the connection was lost before the rows were there.
  var isLost = false

  init(limit: Int) { self.limit = limit }
}

/// A moment after which nobody waits any longer.
struct Deadline {
  private let end: ContinuousClock.Instant

  init(seconds: Int) { self.init(after: .seconds(seconds)) }

  init(after duration: Duration) { end = .now + duration }

  var isOver: Bool { end <= .now }

  /// The time that is left, for `poll`. It is rounded up.
  var milliseconds: Int32 {
    let left = (end - .now).components
    guard left.seconds >= 0, left.attoseconds >= 0 else { return 0 }
    return Int32(clamping: left.seconds * 1_000 + left.attoseconds / 1_000_000_000_000_000 + 1)
  }
}
