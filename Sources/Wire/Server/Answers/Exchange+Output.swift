import CMicrohttpd
import Glibc
import HTTP
import Logs

/// The body of an answer on its way to the client.
struct OutputState {
  typealias Completion = @Sendable (HTTPBodyError?) -> Void

  /// Parts that wait for the client. Of the first, `offset` bytes are gone.
  var parts: [[UInt8]] = []
  var head = 0
  var offset = 0
  var bytes = 0
  /// What may still be written; nil if it isn't known.
  var remaining: Int?
  var isStreamed = false
  var isFinished = false
  var isFailed = false
  /// The library has taken all.
  var isDone = false
  var waiter: (isDirect: Bool, completion: Completion)?

  mutating func append(_ part: [UInt8]) {
    guard !part.isEmpty else { return }
    parts.append(part)
    bytes += part.count
  }

  /// Moves bytes into `buffer`. Returns their number.
  mutating func move(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    var moved = 0
    while moved < buffer.count, head < parts.count {
      let count = min(parts[head].count - offset, buffer.count - moved)
      parts[head].withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: buffer[moved..<moved + count])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count]))
      }
      moved += count
      offset += count
      if offset == parts[head].count {
        parts[head] = []
        head += 1
        offset = 0
      }
    }
    bytes -= moved
    if head == parts.count {
      parts.removeAll(keepingCapacity: head <= 64)
      head = 0
    } else if head >= 64 {
      parts.removeFirst(head)
      head = 0
    }
    return moved
  }

  mutating func fail() -> Waiting? {
    guard !isDone else { return nil }
    isFailed = true
    (parts, head, offset, bytes) = ([], 0, 0, 0)
    return waiter.take().map { waiter in Waiting(isDirect: waiter.isDirect) { waiter.completion(.clientGone) }
    }
  }
}

extension Exchange {
  /// What the library keeps for each body of a known length.
  private static let blockBytes = 32_768
  /// What it keeps for a body without: only a client of HTTP/1.0 gets it through there, and thousands of feeds may wait.
  private static let unsizedBlockBytes = 4_096
  /// Longer bodies are handed to the library part by part, so that it is seen how fast the client takes them.
  private static let wholeBytes = 65_536

  /// Hands the answer to the library.
  func queue(_ answer: HTTPAnswer, _ mhd: OpaquePointer) -> MHD_Result {
    status = answer.status
    if case .other(let body) = answer.body {
      if let upgrade = body as? UpgradeBody { return queueUpgrade(answer, upgrade, mhd) }
      Log.write(.error, .network, nil, "listener: an answer has no body that can be sent")
      return .NO
    }
    let isBodiless = answer.status == 204 || answer.status == 304
    var start: (@Sendable (any HTTPBodySink) -> Void)?
    let response: OpaquePointer?
    switch answer.body {
    case .other: return .NO
    case .bytes(let bytes) where bytes.count <= Self.wholeBytes || head?.isHead != false:
      state.withLock { $0.output.isDone = true }
      connection.bytesOut.wrappingAdd(UInt64(bytes.count), ordering: .relaxed)
      response = bytes.withUnsafeBytes {
        // The library copies. It doesn't write, but its parameter isn't constant.
        MHD_create_response_from_buffer(
          $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
      }
    case .bytes(let bytes):
      state.withLock { state in
        state.output.append(bytes)
        state.output.isFinished = true
        state.output.remaining = 0
      }
      response = streamed(length: bytes.count)
    case .stream(let length, let body):
      let isSent = head?.isHead == false && !isBodiless
      if isSent { start = body }
      state.withLock { state in
        state.output.remaining = length
        state.output.isStreamed = isSent
        state.output.isDone = !isSent
      }
      response = streamed(length: length)
    }
    guard let response else {
      Log.write(.error, .network, nil, "listener: no memory for an answer")
      return .NO
    }
    defer { MHD_destroy_response(response) }
    // The library would send the end of a chunked body behind the head, which would be taken for the next answer.
    if head?.isHead == true, case .stream(nil, _) = answer.body { cmicrohttpd_avoid_chunks(response) }
    add(answer.headers, to: response)
    if let name = core.configuration.serverName { MHD_add_response_header(response, "Server", name) }
    if answer.closesConnection || core.isStopping { MHD_add_response_header(response, "Connection", "close") }
    guard MHD_queue_response(mhd, UInt32(answer.status), response) == .YES else {
      Log.write(.error, .network, nil, "listener: the library refused an answer with status \(answer.status)")
      return .NO
    }
    if let start {
      let writer = HTTPBodyWriter(self)
      if answer.startsAtOnce {
        isProduced = true
        start(writer)
      } else {
        core.threads[workload].enqueue { start(writer) }
      }
    }
    return .YES
  }

  /// Adds headers, without those that would be another header or the body: the library refuses line ends.
  func add(_ headers: [HTTPHeader], to response: OpaquePointer) {
    for header in headers {
      let isTaken = header.name.withCString { name in
        header.value.withCString { value in
          // C would end it at a zero byte.
          strlen(name) == header.name.utf8.count && strlen(value) == header.value.utf8.count
            && MHD_add_response_header(response, name, value) == .YES
        }
      }
      guard isTaken else {
        Log.write(
          .error, .network, nil, "listener: an answer's header “\(header.name)” isn't allowed; left out")
        continue
      }
    }
  }

  private func streamed(length: Int?) -> OpaquePointer? {
    let context = Unmanaged.passRetained(self)
    let size = length.map { UInt64($0) } ?? UInt64.max
    let response = MHD_create_response_from_callback(
      size, length == nil ? Self.unsizedBlockBytes : Self.blockBytes,
      { context, _, buffer, count in
        guard let context, let buffer else { return -2 }
        return Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
          .fill(UnsafeMutableRawBufferPointer(start: buffer, count: count))
      }, context.toOpaque(),
      { context in
        // The only place where a streamed answer lets go.
        if let context { Unmanaged<Exchange>.fromOpaque(context).release() }
      })
    if response == nil { context.release() }
    return response
  }

  /// Called by the library when the client takes more. Returns a number of bytes, 0 for later, -1 for the end, -2 for an
  /// early end.
  private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let (result, waiting) = state.withLock { state -> (Int, Waiting?) in
      if state.isAborted || state.output.isFailed {
        if let mhd = state.mhd { cmicrohttpd_look_again(mhd) }
        return (-2, nil)
      }
      let count = state.output.move(to: buffer)
      if count == 0 {
        if state.output.isFinished {
          state.output.isDone = true
          return (-1, nil)
        }
        suspend(&state)
        return (0, nil)
      }
      // The library knows the length, and doesn't ask again.
      if state.output.bytes == 0, state.output.remaining == 0 { state.output.isDone = true }
      guard state.output.bytes <= core.limits.bufferedAnswerBytes / 2, let waiter = state.output.waiter.take()
      else { return (count, nil) }
      return (count, Waiting(isDirect: waiter.isDirect) { waiter.completion(nil) })
    }
    if result > 0 { connection.bytesOut.wrappingAdd(UInt64(result), ordering: .relaxed) }
    waiting?.run(core.threads.events)
    return result
  }

  func offer(_ bytes: [UInt8], isDirect: Bool, _ completion: @escaping OutputState.Completion) {
    enum Outcome { case done(HTTPBodyError?), wait }
    let outcome = state.withLock { state -> Outcome in
      if state.isAborted || state.isEnded || state.output.isFailed { return .done(.clientGone) }
      if state.output.isFinished { return .done(.wrongLength) }
      if let remaining = state.output.remaining {
        guard bytes.count <= remaining else {
          state.output.isFailed = true
          wake(&state)
          return .done(.wrongLength)
        }
        state.output.remaining = remaining - bytes.count
      }
      state.output.append(bytes)
      wake(&state)
      guard state.output.bytes > core.limits.bufferedAnswerBytes else { return .done(nil) }
      precondition(state.output.waiter == nil, "two calls wait for room in an answer")
      state.output.waiter = (isDirect, completion)
      return .wait
    }
    if case .done(let error) = outcome { completion(error) }
  }

  func endOutput(isWhole: Bool) {
    let waiting = state.withLock { state -> Waiting? in
      guard state.output.isStreamed, !state.output.isFinished, !state.output.isFailed else { return nil }
      var waiting: Waiting?
      if isWhole, state.output.remaining ?? 0 == 0 {
        state.output.isFinished = true
      } else {
        waiting = state.output.fail()
      }
      wake(&state)
      return waiting
    }
    waiting?.run(core.threads.events)
  }
}
