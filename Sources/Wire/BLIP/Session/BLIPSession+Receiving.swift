extension BLIPSession {
  /// Takes a received frame: one message of the transport. Returns what it brought; nil if there is nothing to do.
  package func receive(_ bytes: [UInt8]) throws(BLIPError) -> Event? {
    guard let frame = try reader.read(bytes) else { return nil }
    switch frame.type {
    case .request: return try receiveRequest(frame)
    case .reply, .error: return try receiveReply(frame)
    // An ACK of a message that has been sent to its end comes late, which is no error.
    case .ackRequest: acknowledge(sendingRequests[frame.number], frame.acknowledged)
    case .ackReply: acknowledge(sendingReplies[frame.number], frame.acknowledged)
    }
    return nil
  }

  private func receiveRequest(_ frame: Frame) throws(BLIPError) -> Event? {
    if let incoming = requests[frame.number] {
      defer { if incoming.isComplete { requests[frame.number] = nil } }
      return try add(frame, to: incoming)
    }
    let (next, isOver) = lastRequest.addingReportingOverflow(1)
    guard frame.number == next, !isOver else {
      throw BLIPError(
        .badRequestNumber, "a frame is of request \(frame.number); the last one that began was \(lastRequest)"
      )
    }
    lastRequest = next
    guard openRequests < limits.openRequests else {
      throw BLIPError(.tooManyRequests, "the peer has more than \(limits.openRequests) requests open")
    }
    openRequests += 1
    messages.received += 1
    guard frame.flags.contains(.moreComing) else {
      let message = try MessageParts.message(frame, limits)
      try count(frame.payload.count)
      return .message(message, countedBytes: frame.payload.count, request: nil)
    }
    let incoming = IncomingMessage(frame, request: nil)
    requests[frame.number] = incoming
    return try add(frame, to: incoming)
  }

  private func receiveReply(_ frame: Frame) throws(BLIPError) -> Event? {
    if let incoming = replies[frame.number] {
      defer {
        if incoming.isComplete {
          replies[frame.number] = nil
          answered(frame.number)
        }
      }
      return try add(frame, to: incoming)
    }
    guard let request = awaiting[frame.number] else {
      throw BLIPError(.unexpectedReply, "a reply came to request \(frame.number), which waits for none")
    }
    messages.received += 1
    guard frame.flags.contains(.moreComing) else {
      let message = try MessageParts.message(frame, limits)
      answered(frame.number)
      return .message(message, countedBytes: 0, request: request)
    }
    let incoming = IncomingMessage(frame, request: request)
    replies[frame.number] = incoming
    return try add(frame, to: incoming)
  }

  private func answered(_ number: UInt64) {
    guard awaiting.removeValue(forKey: number) != nil else { return }
    requestLeft()
  }

  private func add(_ frame: Frame, to incoming: IncomingMessage) throws(BLIPError) -> Event? {
    let isLast = !frame.flags.contains(.moreComing)
    incoming.isComplete = isLast
    try count(frame.payload.count)
    if incoming.isStreamed { return .chunk(incoming, frame.payload, wireBytes: frame.wireBytes) }
    let bytes = frame.payload.count
    if incoming.mayBeCut, incoming.isCut || bytes > limits.messageBytes - incoming.countedBytes {
      bufferedBytes -= bytes
      if !incoming.isCut { bufferedBytes -= incoming.cut() }
      try incoming.cut(bytes, limits)
    }
    let hasHead = incoming.isCut ? false : try incoming.add(frame.payload, limits)
    consumeWire(incoming, frame.wireBytes)
    guard isLast else { return hasHead ? .began(incoming) : nil }
    let message = try incoming.message()
    if let request = incoming.request {
      bufferedBytes -= incoming.countedBytes
      return .message(message, countedBytes: 0, request: request)
    }
    return .message(message, countedBytes: incoming.countedBytes, request: nil)
  }

  private func count(_ bytes: Int) throws(BLIPError) {
    guard bytes <= limits.bufferedBytes - bufferedBytes else {
      throw BLIPError(.tooManyBytes, "the messages of the peer take more than \(limits.bufferedBytes) bytes")
    }
    bufferedBytes += bytes
  }

  private func consumeWire(_ incoming: IncomingMessage, _ bytes: Int) {
    guard let acknowledged = incoming.consume(bytes) else { return }
    let key = AckKey(number: incoming.number, type: incoming.kind == .request ? .ackRequest : .ackReply)
    if self.acknowledged.updateValue(acknowledged, forKey: key) == nil { acks.append(key) }
  }

  // MARK: What the receiver does

  /// Streams a message whose `began` was just returned. Returns the body as far as it came, which counts for nothing in
  /// the flow control, but has to be consumed.
  package func stream(_ incoming: IncomingMessage) -> ArraySlice<UInt8> {
    incoming.isStreamed = true
    return incoming.takeBody()
  }

  /// Takes note that a chunk takes no memory any more. When enough was consumed, the peer is told.
  package func consume(_ incoming: IncomingMessage, bytes: Int, wireBytes: Int) {
    bufferedBytes -= bytes
    consumeWire(incoming, wireBytes)
  }

  /// Takes note that a chunk is dropped, because nobody wants its message any more. Throws if the peer doesn't stop sending it.
  package func drop(_ incoming: IncomingMessage, bytes: Int, wireBytes: Int) throws(BLIPError) {
    bufferedBytes -= bytes
    try incoming.drop(wireBytes, limits)
    consumeWire(incoming, wireBytes)
  }

  /// Closes a request that gets no reply. `countedBytes` are those that came with it.
  package func release(countedBytes: Int) {
    bufferedBytes -= countedBytes
    openRequests -= 1
  }

  /// Forgets what is counted for the properties of a streamed reply, after its last chunk.
  package func releaseHead(_ incoming: IncomingMessage) { bufferedBytes -= incoming.countedBytes }
}
