extension BLIPSession {
  // MARK: Messages

  /// Sends a request.
  package func send(_ request: OutgoingMessage) {
    request.countedBytes = request.bytesInMemory
    queuedRequestBytes += request.countedBytes
    guard firstHeld == held.count, requestsInFlight < limits.requestsInFlight else {
      request.place = .held
      held.append(request)
      return
    }
    if request.wantsReply { requestsInFlight += 1 }
    queue.enqueue(request)
  }

  /// Sends a reply to a request of the peer, which is closed by it.
  package func reply(_ message: OutgoingMessage) throws(BLIPError) {
    let bytes = message.bytesInMemory
    // One reply alone may be longer: the app has it in memory anyway.
    guard queuedReplyBytes == 0 || bytes <= limits.queuedReplyBytes - queuedReplyBytes else {
      throw BLIPError(
        .tooManyReplyBytes, "the peer doesn't take replies of more than \(limits.queuedReplyBytes) bytes")
    }
    message.countedBytes = bytes
    queuedReplyBytes += bytes
    queue.enqueue(message)
  }

  /// Takes note that nobody waits for the reply of a request. If it hasn't begun, it isn't sent. The reply of one that has
  /// begun is received and dropped.
  package func cancel(_ request: OutgoingMessage) {
    request.isCancelled = true
    guard !request.hasBegun else { return }
    // In the queue and among the held ones it is passed over later.
    discard(request)
    if request.place == .starved {
      starved[ObjectIdentifier(request)] = nil
      request.place = .nowhere
      if request.wantsReply { requestLeft() }
    }
  }

  /// Goes on with a message whose source has bytes again.
  package func resume(_ message: OutgoingMessage) {
    guard message.place == .starved else { return }
    starved[ObjectIdentifier(message)] = nil
    queue.enqueue(message)
  }

  /// Takes note that a request isn't in flight any more, and lets held ones begin.
  func requestLeft() {
    requestsInFlight -= 1
    while firstHeld < held.count, requestsInFlight < limits.requestsInFlight {
      let request = held[firstHeld]
      firstHeld += 1
      request.place = .nowhere
      if request.isCancelled { continue }
      if request.wantsReply { requestsInFlight += 1 }
      queue.enqueue(request)
    }
    if firstHeld == held.count {
      held.removeAll(keepingCapacity: firstHeld <= 1024)
      firstHeld = 0
    } else if firstHeld >= 256, firstHeld * 2 >= held.count {
      held.removeFirst(firstHeld)
      firstHeld = 0
    }
  }

  func acknowledge(_ message: OutgoingMessage?, _ bytes: UInt64) {
    guard let message else { return }
    message.window.acknowledge(bytes)
    if message.place == .suspended, !message.window.isFull { queue.enqueue(message) }
  }

  // MARK: Frames

  /// Whether a frame may be there to send. `nextFrame` may nevertheless return nil.
  package var hasFrames: Bool { !acks.isEmpty || !queue.isEmpty }

  /// The next frame to send; nil if there is none until an ACK, a message or a source's bytes come. Frames have to be
  /// sent in their order.
  package func nextFrame() throws(BLIPError) -> [UInt8]? {
    if let ack = nextAck() { return ack }
    while let message = queue.popFirst() {
      if message.isCancelled, !message.hasBegun {
        if message.wantsReply { requestLeft() }
        continue
      }
      let isUrgentNext = !message.isUrgent && queue.first?.isUrgent == true
      let number = message.type == .request && !message.hasBegun ? lastSentRequest + 1 : message.number
      let capacity = FrameWriter.capacity(
        isUrgentNext ? FrameSizes.small : FrameSizes.large, number: number, isCompressed: message.isCompressed
      )
      // A byte more, to know whether the frame is the last one.
      guard try fill(message, capacity + 1) else { continue }
      return try frame(of: message, number, capacity)
    }
    return nil
  }

  private func nextAck() -> [UInt8]? {
    guard let key = acks.first else { return nil }
    acks.removeFirst()
    return FrameWriter.ack(key.number, key.type, acknowledged.removeValue(forKey: key) ?? 0)
  }

  /// Gets bytes from the source of a message. Returns false if there is nothing to send of it.
  private func fill(_ message: OutgoingMessage, _ count: Int) throws(BLIPError) -> Bool {
    do {
      let isReady = sourceIsReady
      if try message.fill(count, ready: { isReady(message) }) { return true }
      message.place = .starved
      starved[ObjectIdentifier(message)] = message
      return false
    } catch {
      guard !message.hasBegun else {
        throw BLIPError(.sourceFailed, "the source of a body failed after a part of it was sent")
      }
      discard(message)
      guard message.isReply else {
        outcomes.append((message, error))
        if message.wantsReply { requestLeft() }
        return false
      }
      let reply = try OutgoingMessage(
        BLIPReply(.handlerFailed), to: message.number, isUrgent: message.isUrgent,
        requestBytes: message.requestBytes)
      queue.enqueue(reply)
      return false
    }
  }

  private func frame(of message: OutgoingMessage, _ number: UInt64, _ capacity: Int) throws(BLIPError)
    -> [UInt8]
  {
    let isFirst = !message.hasBegun
    if isFirst { messages.sent += 1 }
    if isFirst, message.type == .request {
      message.number = number
      lastSentRequest = number
      if message.wantsReply { awaiting[number] = message }
    }
    let written = try message.take(capacity) { (bytes, isLast) throws(BLIPError) in
      var flags = FrameFlags(message.type, message.flags)
      if !isLast { flags.insert(.moreComing) }
      return try writer.frame(number, flags, bytes)
    }
    message.window.send(written.wireBytes)
    if message.isDone {
      ended(message)
    } else {
      if isFirst {
        if message.isReply { sendingReplies[number] = message } else { sendingRequests[number] = message }
      }
      if message.window.isFull { message.place = .suspended } else { queue.enqueue(message) }
    }
    return written.bytes
  }

  /// Frees the memory of a message.
  private func discard(_ message: OutgoingMessage) {
    message.discard()
    if message.isReply {
      queuedReplyBytes -= message.countedBytes
    } else {
      queuedRequestBytes -= message.countedBytes
    }
    message.countedBytes = 0
  }

  private func ended(_ message: OutgoingMessage) {
    discard(message)
    if message.isReply {
      sendingReplies[message.number] = nil
      release(countedBytes: message.requestBytes)
    } else {
      sendingRequests[message.number] = nil
      if !message.wantsReply { outcomes.append((message, nil)) }
    }
  }
}
