import CMicrohttpd
import Glibc
import HTTP

/// What has come of the body of a request, and who waits for more.
struct InputState {
  typealias Completion = @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void

  /// What waits for the handler.
  var bytes: [UInt8] = []
  /// Whether the handler has asked for it.
  var isWanted = false
  var received = 0
  var dropped = 0
  var isEnded = false
  var failure: HTTPBodyError?
  var waiter: (isDirect: Bool, completion: Completion)?

  mutating func fail(_ error: HTTPBodyError) -> [Waiting] {
    guard !isEnded else { return [] }
    if failure == nil { failure = error }
    bytes = []
    return waitingCall(.failure(failure ?? error)).map { [$0] } ?? []
  }

  mutating func waitingCall(_ result: Result<[UInt8]?, HTTPBodyError>) -> Waiting? {
    waiter.take().map { waiter in Waiting(isDirect: waiter.isDirect) { waiter.completion(result) } }
  }
}

extension Exchange {
  /// Whether the handler hasn't asked for the body. A short one comes all the same; its request may wait for a thread.
  var isBodyUnasked: Bool { state.withLock { !$0.input.isWanted && !$0.isAnswered } }

  /// Takes a part of the body. What isn't taken comes again after `wake`.
  func take(
    _ part: UnsafeRawBufferPointer, _ mhd: OpaquePointer, _ size: UnsafeMutablePointer<Int>
  ) -> MHD_Result {
    let limits = core.limits
    var early: HTTPAnswer?
    let (result, waiting) = state.withLock { state -> (MHD_Result, [Waiting]) in
      if state.isAborted { return (.NO, []) }
      if state.isAnswered || state.input.failure != nil {
        guard part.count <= limits.droppedBodyBytes - state.input.dropped else {
          early = state.answer.take()
          // The answer is being made.
          if early == nil { suspend(&state) }
          return (.YES, [])
        }
        state.input.dropped += part.count
        size.pointee = 0
        return (.YES, [])
      }
      // The library may offer the next chunk before it suspends the connection.
      if state.isSuspended { return (.YES, []) }
      guard part.count <= limits.bodyBytes - state.input.received else {
        size.pointee = 0
        return (.YES, state.input.fail(.tooLong))
      }
      guard state.input.bytes.count < limits.bufferedBodyBytes else {
        suspend(&state)
        return (.YES, [])
      }
      state.input.received += part.count
      size.pointee = 0
      guard state.input.waiter != nil else {
        state.input.bytes.append(contentsOf: part)
        return (.YES, [])
      }
      return (.YES, state.input.waitingCall(.success([UInt8](part))).map { [$0] } ?? [])
    }
    if size.pointee == 0 { connection.bytesIn.wrappingAdd(UInt64(part.count), ordering: .relaxed) }
    for call in waiting { call.run(core.threads.events) }
    if let early {
      sendEarly(early)
      return .NO
    }
    return result
  }

  /// Sends an answer while the body still comes, of which more is left than is read for an answer in its turn. The library takes no answer
  /// then. The connection is closed behind it.
  private func sendEarly(_ answer: HTTPAnswer) {
    step = .answering
    status = answer.status
    connection.enter(.sending)
    connection.linger()
    let sent = answer.sendWhole(to: connection.served, reason: Self.reason(answer.status))
    connection.bytesOut.wrappingAdd(UInt64(sent), ordering: .relaxed)
    state.withLock { $0.output.isDone = true }
  }

  private static func reason(_ status: Int) -> String {
    MHD_get_reason_phrase_for(UInt32(status)).map { String(cString: $0) } ?? "Refused"
  }

  func endInput() {
    let waiting = state.withLock { state -> Waiting? in
      state.input.isEnded = true
      return state.input.waitingCall(state.input.failure.map { .failure($0) } ?? .success(nil))
    }
    waiting?.run(core.threads.events)
  }

  func readInput(isDirect: Bool, _ completion: @escaping InputState.Completion) {
    let result = state.withLock { state -> Result<[UInt8]?, HTTPBodyError>? in
      if !state.input.isWanted {
        if let length = head?.bodyLength, length > core.limits.bodyBytes {
          state.input.failure = .tooLong
          return .failure(.tooLong)
        }
        state.input.isWanted = true
        // A short body is here already: then the connection waits for the answer.
        if !state.isAnswered, !state.input.isEnded { wake(&state) }
      }
      if let failure = state.input.failure { return .failure(failure) }
      if !state.input.bytes.isEmpty {
        var bytes: [UInt8] = []
        swap(&bytes, &state.input.bytes)
        // It may have waited for room.
        if !state.input.isEnded { wake(&state) }
        return .success(bytes)
      }
      if state.input.isEnded { return .success(nil) }
      if state.isAnswered { return .failure(.clientGone) }
      precondition(state.input.waiter == nil, "two calls wait for the body of a request")
      state.input.waiter = (isDirect, completion)
      return nil
    }
    if let result { completion(result) }
  }
}
