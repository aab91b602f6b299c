import Logs
import System
import Transport

/// What runs a session: a mailbox, and a job that takes everything from it in one go.
///
/// Whoever wants something posts a command. If no job runs, one is enqueued. So a burst of messages costs one hop to
/// another thread, and their frames go to the transport in one call. The session and everything below `state` belong to
/// the job that runs; there is at most one.
final class BLIPLink: @unchecked Sendable {
  struct HandlerEntry: Sendable {
    let sink: BLIPConnection.SinkChoice?
    let takesCut: Bool
    let isInOrder: Bool
    let handle: BLIPConnection.Handler
  }

  enum Command {
    case start
    case handler(String, HandlerEntry)
    case send(OutgoingMessage)
    case cancel(OutgoingMessage)
    /// A reply; nil if none can be made, which can't be.
    case reply(OutgoingMessage?)
    /// A request that gets no reply isn't used any more; the bytes that are counted for it.
    case release(Int)
    case resume(OutgoingMessage)
    case consumed(IncomingMessage, bytes: Int, wireBytes: Int)
    case received(Result<[[UInt8]], TransportClose>)
    case sent(TransportClose?)
    /// More may be received.
    case goOn
    case keep(Int)
    /// Others need the memory.
    case evict
    /// The end; without waiting for a transport that is busy, if `isAtOnce`.
    case close(TransportClose, isAtOnce: Bool)
  }

  /// Requests of a profile that come to their handler in the order in which they were sent.
  private struct Ordered {
    /// The numbers of those that have begun and haven't come whole, in order.
    var begun: [UInt64] = []
    /// Those that have come whole, and wait for earlier ones; in order.
    var waiting: [(message: BLIPMessage, countedBytes: Int)] = []

    mutating func end(_ message: BLIPMessage, _ countedBytes: Int) {
      begun.removeAll { $0 == message.number }
      let place = waiting.firstIndex { $0.message.number > message.number } ?? waiting.count
      waiting.insert((message, countedBytes), at: place)
    }

    mutating func next() -> (message: BLIPMessage, countedBytes: Int)? {
      guard let first = waiting.first, first.message.number < begun.first ?? .max else { return nil }
      return waiting.removeFirst()
    }
  }

  private struct Mailbox {
    var commands: [Command] = []
    var isRunning = false
  }

  private struct End {
    var error: BLIPError?
    var handlers: [@Sendable (BLIPError) -> Void] = []
  }

  /// What one call of the transport's `send` takes at least, if there is so much.
  private static let batchBytes = 256 << 10
  private static let batchFrames = 2048
  /// How often a job empties the mailbox before another job may run.
  private static let roundsOfJob = 64

  private let transport: any MessageTransport
  private let workers: Workers
  private let name: String?
  private let memory: BLIPMemory?
  private var account: BLIPMemory.Account?
  private let mailbox = Lock(Mailbox())
  private let end = Lock(End())
  private let thread = ThreadChecker("a BLIP connection")
  private let counted = Lock(BLIPMessageCounts())

  // Of the running job.
  private let session: BLIPSession
  private var handlers: [String: HandlerEntry] = [:]
  private var ordered: [String: Ordered] = [:]
  /// Frames that have come and wait for memory; `nextFrame` is the next one.
  private var frames: [[UInt8]] = []
  private var nextFrame = 0
  private var isTaking = false
  private var keptBytes = 0
  private var isStarted = false
  private var isSending = false
  /// The end that was asked for and waits until the transport has taken what is being sent.
  private var closing: TransportClose?
  private var error: BLIPError?

  init(
    _ transport: any MessageTransport, limits: BLIPLimits, name: String?, workers: Workers,
    memory: BLIPMemory?
  ) {
    self.memory = memory
    self.transport = transport
    self.workers = workers
    self.name = name
    session = BLIPSession(limits: limits)
    session.sourceIsReady = { [weak self] message in self?.post(.resume(message)) }
    account = memory?.open({ [weak self] in self?.post(.goOn) }, evict: { [weak self] in self?.post(.evict) })
  }

  // MARK: The mailbox

  func post(_ command: Command) {
    let isIdle = mailbox.withLock { mailbox in
      mailbox.commands.append(command)
      defer { mailbox.isRunning = true }
      return !mailbox.isRunning
    }
    if isIdle { workers.enqueue { self.run() } }
  }

  private func run() {
    var commands: [Command] = []
    for _ in 0..<Self.roundsOfJob {
      commands.removeAll(keepingCapacity: commands.count <= 4096)
      let isOver = mailbox.withLock { mailbox in
        swap(&commands, &mailbox.commands)
        if commands.isEmpty { mailbox.isRunning = false }
        return commands.isEmpty
      }
      if isOver { return }
      thread.enter()
      for command in commands { handle(command) }
      sendFrames()
      noteMemory()
      counted.withLock { $0 = session.messages }
      thread.leave()
    }
    // Connections that share workers take turns.
    workers.enqueue { self.run() }
  }

  private func handle(_ command: Command) {
    switch command {
    case .start: start()
    case .handler(let profile, let entry): if error == nil { handlers[profile] = entry }
    case .send(let message): send(message)
    case .cancel(let message): cancel(message)
    case .reply(let message): reply(message)
    case .release(let bytes): if error == nil { session.release(countedBytes: bytes) }
    case .resume(let message): if error == nil { session.resume(message) }
    case .consumed(let incoming, let bytes, let wireBytes):
      if error == nil { session.consume(incoming, bytes: bytes, wireBytes: wireBytes) }
    case .received(.success(let messages)): receive(messages)
    case .received(.failure(let close)):
      finish(BLIPError(.closed, "the peer or the network has closed the connection", close: close))
    case .sent(nil):
      isSending = false
      if let closing { close(closing) }
    case .sent(let close?):
      // What the peer sent before the end hasn't been read. `receive` reports the end after it.
      guard !isStarted else { break }
      finish(BLIPError(.closed, "the peer or the network has closed the connection", close: close))
    case .goOn: takeFrames()
    case .keep(let bytes): keptBytes = bytes
    case .evict:
      fail(BLIPError(.tooManyBytes, "the connection goes on too slowly for the memory that it takes"))
    case .close(let close, let isAtOnce):
      // A second call doesn't wait either.
      if isSending, !isAtOnce, closing == nil { closing = close } else { self.close(closing ?? close) }
    }
  }

  private func start() {
    guard error == nil, !isStarted else { return }
    isStarted = true
    askForMore()
  }

  // MARK: Sending

  private func send(_ message: OutgoingMessage) {
    message.isPosted = true
    if message.isCancelled { return complete(message, .failure(CancellationError())) }
    if let error { return complete(message, .failure(error.asClosed)) }
    if let closing { return complete(message, .failure(BLIPError.asked(closing))) }
    session.send(message)
  }

  private func cancel(_ message: OutgoingMessage) {
    guard message.isPosted else {
      // The task was cancelled before it has sent anything.
      message.isCancelled = true
      return
    }
    if error == nil { session.cancel(message) }
    complete(message, .failure(CancellationError()))
  }

  private func reply(_ message: OutgoingMessage?) {
    guard error == nil, let message else { return }
    do { try session.reply(message) } catch { fail(error) }
  }

  private func complete(_ message: OutgoingMessage, _ result: Result<BLIPMessage, any Error>) {
    message.completion.take()?(result)
  }

  private func sendFrames() {
    guard error == nil, !isSending, session.hasFrames else { return }
    var frames: [[UInt8]] = []
    var bytes = 0
    do {
      while bytes < Self.batchBytes, frames.count < Self.batchFrames, let frame = try session.nextFrame() {
        bytes += frame.count
        frames.append(frame)
      }
    } catch {
      fail(error)
      return completeOutcomes()
    }
    if !frames.isEmpty {
      isSending = true
      transport.send(frames) { self.post(.sent($0)) }
    }
    completeOutcomes()
  }

  /// Calls the completions of requests whose outcome came with writing their frames.
  private func completeOutcomes() {
    guard !session.outcomes.isEmpty else { return }
    let outcomes = session.outcomes
    session.outcomes = []
    for (message, failure) in outcomes {
      if let failure = failure ?? error?.asClosed {
        complete(message, .failure(failure))
      } else {
        complete(
          message, .success(BLIPMessage(kind: .reply, number: message.number, flags: [], properties: [:])))
      }
    }
  }

  // MARK: Receiving

  private func askForMore() { transport.receive { self.post(.received($0)) } }

  private func receive(_ messages: [[UInt8]]) {
    (frames, nextFrame, isTaking) = (messages, 0, true)
    takeFrames()
  }

  /// Takes the frames that have come, as far as there is memory. Until all are taken, the peer waits.
  private func takeFrames() {
    guard error == nil, isTaking else { return }
    while nextFrame < frames.count {
      if let memory, let account, !memory.admits(account) { return }
      let frame = frames[nextFrame]
      nextFrame += 1
      do { if let event = try session.receive(frame) { try receive(event) } } catch { return fail(error) }
      guard error == nil else { return }
      noteMemory()
    }
    (frames, nextFrame, isTaking) = ([], 0, false)
    askForMore()
  }

  /// Tells what this connection holds.
  private func noteMemory() {
    guard let memory, let account, error == nil else { return }
    memory.update(
      account, held: session.heldBytes + keptBytes,
      toSend: session.queuedReplyBytes + session.queuedRequestBytes)
  }

  private func receive(_ event: BLIPSession.Event) throws(BLIPError) {
    if Log.isWritten(.debug, .network) { log(event) }
    switch event {
    case .message(let message, let countedBytes, nil): receive(message, countedBytes)
    case .message(let message, _, let request?):
      guard let sink = request.sink, message.kind == .reply, !request.isCancelled else {
        return complete(request, .success(message))
      }
      complete(request, .success(pour(message, into: sink)))
    case .began(let incoming): try begin(incoming)
    case .chunk(let incoming, let bytes, let wireBytes):
      try pour(incoming, bytes, wireBytes)
      if incoming.isComplete { endStream(incoming) }
    }
  }

  /// Logs what came, without its contents.
  private func log(_ event: BLIPSession.Event) {
    switch event {
    case .message(let message, _, _):
      Log.write(
        .debug, .network, name,
        "BLIP: \(message.kind) \(message.number) \(message.profile ?? "") has come, \(message.body.count) bytes"
      )
    case .began(let incoming):
      Log.write(
        .debug, .network, name,
        "BLIP: \(incoming.kind) \(incoming.number) \(incoming.head?.profile ?? "") has begun")
    case .chunk(let incoming, _, _):
      guard incoming.isComplete else { return }
      Log.write(.debug, .network, name, "BLIP: \(incoming.kind) \(incoming.number) has come")
    }
  }

  private func receive(_ message: BLIPMessage, _ countedBytes: Int) {
    let entry = message.profile.flatMap { handlers[$0] }
    if let entry, entry.isInOrder, let profile = message.profile {
      ordered[profile, default: Ordered()].end(message, countedBytes)
      while error == nil, let next = ordered[profile]?.next() {
        answer(next.message, next.countedBytes, entry)
      }
      return
    }
    var message = message
    if let sink = entry?.sink?(message.withoutBody) { message = pour(message, into: sink) }
    answer(message, countedBytes, entry)
  }

  private func answer(_ message: BLIPMessage, _ countedBytes: Int, _ entry: HandlerEntry?) {
    let request = BLIPIncomingRequest(message, countedBytes: countedBytes, self)
    if let entry { entry.handle(request) } else { request.reply(BLIPErrorReply.noHandler) }
  }

  /// Gives a message that has come whole to a sink.
  private func pour(_ message: BLIPMessage, into sink: any BLIPSink) -> BLIPMessage {
    let head = message.withoutBody
    sink.begin(head)
    if !message.body.isEmpty { sink.write(message.body) {} }
    return head
  }

  /// Decides where the body of a message of several frames goes.
  private func begin(_ incoming: IncomingMessage) throws(BLIPError) {
    guard let head = incoming.head else { return }
    if let request = incoming.request {
      // A reply that nobody waits for is streamed to nobody.
      guard request.isCancelled || (request.sink != nil && head.kind == .reply) else { return }
      incoming.sink = request.isCancelled ? nil : request.sink
    } else {
      let entry = head.profile.flatMap { handlers[$0] }
      incoming.mayBeCut = entry?.takesCut ?? false
      if entry?.isInOrder ?? false, let profile = head.profile {
        ordered[profile, default: Ordered()].begun.append(head.number)
        return
      }
      guard let sink = entry?.sink?(head) else { return }
      incoming.sink = sink
    }
    let bytes = session.stream(incoming)
    incoming.sink?.begin(head)
    try pour(incoming, bytes, 0)
  }

  private func pour(_ incoming: IncomingMessage, _ bytes: ArraySlice<UInt8>, _ wireBytes: Int)
    throws(BLIPError)
  {
    let count = bytes.count
    if let sink = incoming.sink, sink.isFull {
      incoming.sink = nil
      if let request = incoming.request {
        request.isCancelled = true
        complete(request, .failure(BLIPError(.refused, "a reply is longer than wanted")))
      }
    }
    guard let sink = incoming.sink, incoming.request?.isCancelled != true else {
      return try session.drop(incoming, bytes: count, wireBytes: wireBytes)
    }
    if count == 0 { return session.consume(incoming, bytes: 0, wireBytes: wireBytes) }
    sink.write(bytes) { self.post(.consumed(incoming, bytes: count, wireBytes: wireBytes)) }
  }

  private func endStream(_ incoming: IncomingMessage) {
    guard let head = incoming.head else { return }
    incoming.sink = nil
    if let request = incoming.request {
      session.releaseHead(incoming)
      complete(request, .success(head))
    } else {
      answer(head, incoming.countedBytes, head.profile.flatMap { handlers[$0] })
    }
  }

  // MARK: The end

  /// Ends the connection because it was asked for.
  private func close(_ close: TransportClose) {
    sendFrames()
    finish(.asked(close))
  }

  /// Ends the connection because of what the peer sent, or because this side can't go on. A message that is too long will be the next
  /// time.
  private func fail(_ error: BLIPError) {
    var error = error
    error.close = .webSocket(error.code == .messageTooLong ? 1009 : 1011, error.message)
    finish(error)
  }

  private func finish(_ error: BLIPError) {
    guard self.error == nil else { return }
    self.error = error
    if error.code == .closed {
      Log.write(.verbose, .network, name, "BLIP: \(error.message): \(error.close.map(\.description) ?? "")")
    } else {
      Log.write(.warning, .network, name, "BLIP: the connection is closed: \(error)")
    }
    transport.close(error.close ?? .normal)
    (handlers, ordered) = ([:], [:])
    (frames, nextFrame) = ([], 0)
    let (requests, streams) = session.end()
    if let memory, let account { memory.close(account) }
    for stream in streams where stream.request?.isCancelled != true {
      stream.sink?.abandon(error.asClosed)
      stream.sink = nil
    }
    for request in requests { complete(request, .failure(error.asClosed)) }
    let waiting = end.withLock { end in
      end.error = error
      defer { end.handlers = [] }
      return end.handlers
    }
    for handler in waiting { handler(error) }
  }

  var traffic: TransportTraffic { transport.traffic }

  var messages: BLIPMessageCounts { counted.withLock { $0 } }

  var closed: BLIPError? { end.withLock { $0.error } }

  func onClose(_ handler: @escaping @Sendable (BLIPError) -> Void) {
    let error = end.withLock { end in
      if end.error == nil { end.handlers.append(handler) }
      return end.error
    }
    if let error { handler(error) }
  }
}

extension BLIPError {
  fileprivate static func asked(_ close: TransportClose) -> BLIPError {
    BLIPError(.closed, "the connection was closed", close: close)
  }

  /// What requests get that waited when the connection ended.
  fileprivate var asClosed: BLIPError {
    code == .closed ? self : BLIPError(.closed, "the connection was closed: \(message)", close: close)
  }
}

extension BLIPMessage {
  /// The message without its body.
  fileprivate var withoutBody: BLIPMessage {
    BLIPMessage(kind: kind, number: number, flags: flags, properties: properties)
  }
}
