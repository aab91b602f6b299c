import CMicrohttpd
import Glibc
import HTTP
import Logs
import System

/// One request and its answer, between the library's thread and the handler's.
///
/// The library calls `handle` on its thread, again and again, until it has an answer. When there is nothing to do for it,
/// the connection is suspended. What comes from elsewhere (an answer, room for more of the body, an end) is put into
/// `state`, and wakes the connection; then `handle` looks again at all that there is. So no order of events matters.
///
/// Of the locks, this one is taken before the library's own. A callback under a lock of the library must not take it; the
/// only one is the end of an upgraded connection, and there nobody holds it while calling the library.
final class Exchange: @unchecked Sendable {
  /// What the library's thread does next. Only that thread uses it.
  enum Step {
    case line, headers, body, complete, answering
  }

  struct State {
    /// The library's connection, until the request ends.
    var mhd: OpaquePointer?
    var isSuspended = false
    /// Nobody waits for the answer any more.
    var isAborted = false
    /// The handler has had its time.
    var isTimedOut = false
    var isEnded = false
    var input = InputState()
    /// Set by `answer`; taken by the library's thread.
    var answer: HTTPAnswer?
    var isAnswered = false
    var output = OutputState()
    var whenCancelled: [@Sendable () -> Void] = []
  }

  let core: ServerCore
  let connection: ServerConnection
  private let rawTarget: [UInt8]
  private let targetPlace: UnsafePointer<CChar>?
  let began = MonotonicClock.now
  let state: Lock<State>

  // Only the library's thread uses these, but `head`, which others read after `begin`.
  private(set) nonisolated(unsafe) var head: RequestHead?
  var step = Step.line
  private var hasBegun = false
  var status = 0
  var takeOver: (@Sendable (UpgradedConnection) -> Void)?
  private var user: String?
  private(set) var workload = HTTPWorkload.long
  /// Whether a thread makes the body of the answer while it is sent.
  var isProduced = false

  init(_ core: ServerCore, _ connection: ServerConnection, mhd: OpaquePointer, target: UnsafePointer<CChar>?)
  {
    self.core = core
    self.connection = connection
    rawTarget = target.map { [UInt8](UnsafeRawBufferPointer(start: $0, count: strlen($0))) } ?? []
    targetPlace = target
    state = Lock(State(mhd: mhd))
  }

  // MARK: The library's thread

  /// Called with the headers, with each part of the body, and at its end.
  func handle(
    _ mhd: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>,
    _ upload: UnsafeRawPointer?, _ size: UnsafeMutablePointer<Int>
  ) -> MHD_Result {
    switch step {
    case .line: return readHead(mhd, method, version)
    case .headers: return afterHeaders(mhd)
    case .body:
      if let upload, size.pointee > 0 {
        return take(UnsafeRawBufferPointer(start: upload, count: size.pointee), mhd, size)
      }
      step = .complete
      endInput()
      connection.enter(.working)
      return afterRequest(mhd)
    case .complete:
      if !hasBegun { begin() }
      return afterRequest(mhd)
    case .answering: return .YES
    }
  }

  private func readHead(
    _ mhd: OpaquePointer, _ method: UnsafePointer<CChar>, _ version: UnsafePointer<CChar>
  ) -> MHD_Result {
    let head: RequestHead
    do throws(Rejection) {
      head = try RequestHead(
        mhd, method: method, target: rawTarget, at: targetPlace, version: version, limits: core.limits)
    } catch {
      // What follows on this connection may not be what it seems. An answer that comes now closes it.
      step = .answering
      connection.enter(.sending)
      connection.linger()
      return queue(core.errorAnswer(error.status, error.reason), mhd)
    }
    self.head = head
    connection.enter(.working)
    guard head.hasBody else {
      state.withLock { $0.input.isEnded = true }
      // The library calls again at once. An answer that is given now would close the connection.
      step = .complete
      return .YES
    }
    step = .headers
    begin()
    return afterHeaders(mhd)
  }

  /// The client sends a body. It is read when the handler wants it; an answer that comes before spares the client that. A body that mostly
  /// came with the headers is read at once: the handler doesn't wait for it then.
  private func afterHeaders(_ mhd: OpaquePointer) -> MHD_Result {
    enum Next { case abort, answer(HTTPAnswer), body, wait }
    let isShort =
      head.map { $0.bodyLength ?? .max <= core.limits.promptBodyBytes && !$0.expectsContinue } ?? false
    let next = state.withLock { state -> Next in
      if state.isAborted { return .abort }
      if let answer = state.answer {
        // A short body is read and dropped, and the connection stays.
        if let head, let length = head.bodyLength, length <= core.limits.droppedBodyBytes,
          !head.expectsContinue
        {
          return .body
        }
        state.answer = nil
        return .answer(answer)
      }
      if state.input.isWanted || isShort { return .body }
      suspend(&state)
      return .wait
    }
    switch next {
    case .abort: return .NO
    case .wait: return .YES
    case .body:
      step = .body
      connection.enter(.receiving)
      return .YES
    case .answer(let answer):
      step = .answering
      connection.enter(.sending)
      connection.linger()
      return queue(answer, mhd)
    }
  }

  /// The request is whole.
  private func afterRequest(_ mhd: OpaquePointer) -> MHD_Result {
    enum Next { case abort, answer(HTTPAnswer), wait }
    let next = state.withLock { state -> Next in
      if state.isAborted { return .abort }
      if let answer = state.answer.take() { return .answer(answer) }
      suspend(&state)
      return .wait
    }
    switch next {
    case .abort: return .NO
    case .wait: return .YES
    case .answer(let answer):
      step = .answering
      connection.enter(.sending)
      return queue(answer, mhd)
    }
  }

  /// Nothing more happens on this connection until `wake`.
  func suspend(_ state: inout State) {
    guard !state.isSuspended, let mhd = state.mhd else { return }
    state.isSuspended = true
    connection.isPaused.store(true, ordering: .relaxed)
    MHD_suspend_connection(mhd)
  }

  /// The request has ended: its answer was sent, or the connection closed.
  func ended() {
    if hasBegun { connection.loop?.requests -= 1 }
    let (waiting, cancelled, unsent) = state.withLock { state in
      state.mhd = nil
      state.isEnded = true
      let unsent = state.answer.take()
      let isWhole = state.output.isDone
      var waiting = state.input.fail(.clientGone)
      if let call = state.output.fail() { waiting.append(call) }
      let cancelled = state.isAborted || isWhole ? [] : state.whenCancelled
      state.whenCancelled = []
      if !isWhole { state.isAborted = true }
      return (waiting, cancelled, unsent)
    }
    // Whoever waits for the body of an answer that wasn't sent learns of it.
    _ = consume unsent
    for call in waiting { call.run(core.threads.cancellations) }
    for call in cancelled { core.threads.cancellations.enqueue(call) }
    connection.set(nil as Exchange?)
    connection.isPaused.store(false, ordering: .relaxed)
    connection.enter(.waiting)
    logAccess()
  }

  private func logAccess() {
    guard Log.isWritten(.verbose, .network) else { return }
    let milliseconds = Int(((MonotonicClock.now - began) * 1000).rounded())
    let what = head.map { "\($0.method) \($0.target.logged)" } ?? "a malformed request"
    Log.write(
      .verbose, .network, nil,
      "listener: \(connection.peer) \(user ?? "-") \(what) \(status == 0 ? "no answer" : String(status)), \(milliseconds) ms"
    )
  }

  // MARK: To the handler

  /// Checks who asks, and asks the handler.
  private func begin() {
    hasBegun = true
    connection.loop?.requests += 1
    core.noticeRequest(of: connection)
    guard let head else { return }
    connection.requests.wrappingAdd(1, ordering: .relaxed)
    if !core.hostCheck.allows(head.authority) {
      return answer(
        core.errorAnswer(403, "this server isn't reached under that name; the header Host is wrong"))
    }
    do throws(Rejection) { try core.checkCertificate(connection) } catch {
      return answer(core.errorAnswer(error.status, error.reason))
    }
    let question = LoginQuestion(
      peer: connection.peer,
      authorization: head.headers.bytes("authorization").map { String(decoding: $0, as: UTF8.self) },
      certificate: connection.certificate, head: head)
    if let verdict = core.authenticator.verdictAtOnce(question) { return go(verdict, head) }
    core.authenticator.check(question) { [self] verdict in go(verdict, head) }
  }

  private func go(_ verdict: LoginVerdict, _ head: RequestHead) {
    switch verdict {
    case .refused(let status, let headers, let reason):
      var answer = core.errorAnswer(status, reason)
      answer.headers += headers
      let request = HTTPRequest(self, head, .anonymous)
      self.answer(core.handler.refusal(answer, of: request))
    case .allowed(let context):
      user = context.name
      connection.set(user: context.name)
      let request = HTTPRequest(self, head, context)
      if let answer = core.handler.answerAtOnce(request) { return self.answer(answer) }
      let responder = HTTPResponder(self)
      workload = core.handler.workload(of: request)
      core.threads[workload].enqueue { [core] in
        // Its time may be over before a thread was free.
        if !request.isCancelled { core.handler.handle(request, responder) }
      }
    }
  }

  // MARK: From any thread

  /// Lets the library's thread look again.
  func wake(_ state: inout State) {
    guard state.isSuspended, let mhd = state.mhd else { return }
    state.isSuspended = false
    connection.isPaused.store(false, ordering: .relaxed)
    MHD_resume_connection(mhd)
    connection.loop?.wake()
  }

  func answer(_ answer: HTTPAnswer) {
    state.withLock { state in
      guard !state.isAnswered, !state.isEnded else { return }
      state.isAnswered = true
      state.answer = answer
      wake(&state)
    }
  }

  func answerIfMissing() {
    guard state.withLock({ !$0.isAnswered && !$0.isEnded && !$0.isAborted }) else { return }
    Log.write(.error, .network, nil, "listener: a handler gave no answer to \(head?.method ?? "a request")")
    answer(core.errorAnswer(500, "the server gave no answer"))
  }

  /// Nobody waits for the answer any more; the connection is closed as soon as the library's thread sees it.
  func abort() {
    let (waiting, cancelled) = state.withLock { state -> ([Waiting], [@Sendable () -> Void]) in
      guard !state.isAborted, !state.isEnded else { return ([], []) }
      state.isAborted = true
      var waiting = state.input.fail(.clientGone)
      if let call = state.output.fail() { waiting.append(call) }
      let cancelled = state.whenCancelled
      state.whenCancelled = []
      wake(&state)
      return (waiting, cancelled)
    }
    for call in waiting { call.run(core.threads.cancellations) }
    for call in cancelled { core.threads.cancellations.enqueue(call) }
  }

  /// The handler has had its time: it hears that nobody waits any more, and the client gets this answer.
  func timeOut(_ answer: HTTPAnswer) {
    // First: once the answer is sent, the request has ended, and a handler that begins then would never hear of it.
    let cancelled = state.withLock { state in
      state.isTimedOut = true
      defer { state.whenCancelled = [] }
      return state.whenCancelled
    }
    self.answer(answer)
    for call in cancelled { core.threads.cancellations.enqueue(call) }
  }

  var isCancelled: Bool { state.withLock { $0.isAborted || $0.isTimedOut } }
  var isAnswered: Bool { state.withLock { $0.isAnswered } }

  func onCancel(_ body: @escaping @Sendable () -> Void) {
    let isCancelled = state.withLock { state in
      if state.isAborted || state.isTimedOut { return true }
      if !state.isEnded { state.whenCancelled.append(body) }
      return false
    }
    if isCancelled { core.threads.cancellations.enqueue(body) }
  }
}

/// A call that waits for an event. One that only wakes a waiting thread runs where the event comes from.
struct Waiting {
  var isDirect: Bool
  var call: @Sendable () -> Void

  func run(_ workers: Workers) {
    if isDirect { call() } else { workers.enqueue(call) }
  }
}
