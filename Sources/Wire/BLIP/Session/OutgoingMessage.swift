import Bytes

/// A message on its way out. Only its session, or the executor of its connection, reads and changes it.
package final class OutgoingMessage: @unchecked Sendable {
  /// What is done with a request's reply, or with the error that there is none.
  package typealias Completion = @Sendable (Result<BLIPMessage, any Error>) -> Void

  /// Where a message is that isn't being written.
  enum Place {
    case nowhere
    /// Waits until the peer has answered other requests.
    case held
    /// Is in the queue.
    case queued
    /// Waits for an ACK.
    case suspended
    /// Waits for its source.
    case starved
  }

  let type: FrameType
  let flags: FrameFlags
  /// The number; 0 for a request that hasn't begun.
  var number: UInt64
  /// The length of the properties, the properties, and what of the body waits in memory.
  private var waiting: [UInt8]
  private var offset = 0
  private var source: (any BLIPSource)?
  private var hasBegunSource = false
  /// Its flow control.
  var window = SendWindow()
  private(set) var hasBegun = false
  private(set) var isDone = false
  /// Where it is.
  var place = Place.nowhere
  /// The bytes of the request that this reply answers, which stay counted until it is sent.
  let requestBytes: Int
  /// What of it is counted in `BLIPSession.queuedReplyBytes`, or `queuedRequestBytes`.
  var countedBytes = 0

  // Of a request.

  /// Whether nobody wants the reply any more.
  var isCancelled = false
  /// Whether the connection's executor has got it.
  var isPosted = false
  /// Called once. Set before the message is sent.
  var completion: Completion?
  let sink: (any BLIPSink)?

  /// Makes a request.
  package init(_ request: BLIPRequest, sink: (any BLIPSink)? = nil, completion: Completion? = nil)
    throws(BLIPError)
  {
    type = .request
    var flags: FrameFlags = []
    if request.isUrgent { flags.insert(.urgent) }
    if request.isCompressed { flags.insert(.compressed) }
    if request.isNoReply { flags.insert(.noReply) }
    self.flags = flags
    number = 0
    requestBytes = 0
    self.sink = sink
    self.completion = completion
    (waiting, source) = try Self.contents(request.properties, request.body)
  }

  /// Makes a reply to request `number` of the peer, for which `requestBytes` are counted.
  package init(_ reply: BLIPReply, to number: UInt64, isUrgent: Bool = false, requestBytes: Int = 0)
    throws(BLIPError)
  {
    type = reply.isError ? .error : .reply
    var flags: FrameFlags = []
    if reply.isUrgent || isUrgent { flags.insert(.urgent) }
    if reply.isCompressed { flags.insert(.compressed) }
    self.flags = flags
    self.number = number
    self.requestBytes = requestBytes
    sink = nil
    completion = nil
    (waiting, source) = try Self.contents(reply.properties, reply.body)
  }

  private static func contents(_ properties: BLIPProperties, _ body: BLIPBody) throws(BLIPError) -> (
    [UInt8], (any BLIPSource)?
  ) {
    guard !properties.hasNUL else {
      throw BLIPError(.invalidMessage, "a property of a message has NUL in it")
    }
    guard properties.bytes.count <= BLIPLimits().propertiesBytes else {
      throw BLIPError(.invalidMessage, "the properties of a message have \(properties.bytes.count) bytes")
    }
    var waiting: [UInt8] = []
    if case .bytes(let bytes) = body { waiting.reserveCapacity(3 + properties.bytes.count + bytes.count) }
    waiting.append(varint: UInt64(properties.bytes.count))
    waiting.append(contentsOf: properties.bytes)
    switch body {
    case .bytes(let bytes):
      waiting.append(contentsOf: bytes)
      return (waiting, nil)
    case .source(let source): return (waiting, source)
    }
  }

  var isUrgent: Bool { flags.contains(.urgent) }
  var isCompressed: Bool { flags.contains(.compressed) }
  var isReply: Bool { type != .request }
  var wantsReply: Bool { type == .request && !flags.contains(.noReply) }
  /// The bytes in memory that aren't sent.
  var bytesInMemory: Int { waiting.count - offset }

  /// Fills the memory with `count` bytes from the source, if it has them. Returns false if there is nothing to send yet.
  ///
  /// `ready` is what the source calls when it has more.
  func fill(_ count: Int, ready: @escaping @Sendable () -> Void) throws -> Bool {
    guard let source else { return true }
    if !hasBegunSource {
      hasBegunSource = true
      source.begin(ready)
    }
    waiting.removeFirst(offset)
    offset = 0
    let countBefore = waiting.count
    while waiting.count < count {
      let before = waiting.count
      switch try source.read(count - before, into: &waiting) {
      case .more:
        if waiting.count == before { return endSource() }
      case .later:
        // The properties alone aren't sent, so that a source that fails at once can still become an error reply.
        return hasBegun ? !waiting.isEmpty : waiting.count > countBefore
      case .end: return endSource()
      }
    }
    return true
  }

  private func endSource() -> Bool {
    source = nil
    return true
  }

  /// Lends the next bytes, at most `count` of them, to `body`, and says whether they are the last ones. Then they are
  /// sent.
  func take<R>(_ count: Int, _ body: (UnsafeRawBufferPointer, _ isLast: Bool) throws(BLIPError) -> R)
    throws(BLIPError) -> R
  {
    let end = min(waiting.count, offset + count)
    let isLast = source == nil && end == waiting.count
    let start = offset
    let waiting = waiting
    let result = try waiting.span.bytes.withUnsafeBytes { (bytes) throws(BLIPError) in
      try body(UnsafeRawBufferPointer(rebasing: bytes[start..<end]), isLast)
    }
    offset = end
    hasBegun = true
    isDone = isLast
    return result
  }

  /// Frees the memory and the source.
  func discard() {
    waiting = []
    offset = 0
    source = nil
  }
}
