import Bytes

/// A message of several frames that is being received. Only its session, or the executor of its connection, reads and
/// changes it.
package final class IncomingMessage: @unchecked Sendable {
  let kind: BLIPMessage.Kind
  let number: UInt64
  private let flags: FrameFlags
  /// The request that it answers.
  let request: OutgoingMessage?
  /// Properties and body as far as they came; only the properties if the body is streamed.
  private(set) var collected: [UInt8] = []
  private var bodyStart = 0
  /// The message without its body, once its properties have come.
  private(set) var head: BLIPMessage?
  var isStreamed = false
  /// Whether a body that is too long is dropped, in place of ending the connection.
  var mayBeCut = false
  /// Whether it was.
  private(set) var isCut = false
  /// The bytes of the message so far, if it was cut.
  private(set) var cutBytes = 0
  /// Whether nobody wants the rest. It isn't acknowledged any more.
  var isUnwanted = false
  /// What takes the body, if it is streamed.
  var sink: (any BLIPSink)?
  var isComplete = false
  private var window = ReceiveWindow()
  /// The bytes that are counted in `BLIPSession.bufferedBytes` for `collected`.
  var countedBytes: Int { collected.count }

  init(_ frame: Frame, request: OutgoingMessage?) {
    kind = frame.type.messageKind
    number = frame.number
    flags = frame.flags
    self.request = request
  }

  /// Adds a piece. Returns true if the properties have become complete by it.
  func add(_ bytes: ArraySlice<UInt8>, _ limits: BLIPLimits) throws(BLIPError) -> Bool {
    guard bytes.count <= limits.messageBytes - collected.count else {
      throw BLIPError(.messageTooLong, "a message has more than \(limits.messageBytes) bytes")
    }
    collected.append(contentsOf: bytes)
    guard head == nil else { return false }
    guard let range = try MessageParts.properties(of: collected[...], limits),
      range.upperBound <= collected.count
    else { return false }
    // A copy: the properties would otherwise keep all of `collected` from growing in place.
    let properties = try BLIPProperties(received: Array(collected[range])[...])
    bodyStart = range.upperBound
    head = BLIPMessage(kind: kind, number: number, flags: flags, properties: properties)
    return true
  }

  /// The whole message. Throws if it has ended inside its properties.
  func message() throws(BLIPError) -> BLIPMessage {
    guard var message = head else { throw MessageParts.tooShort }
    message.isCut = isCut
    if !isCut { message.body = collected[bodyStart...] }
    return message
  }

  /// Drops the body as far as it came, and what follows. Returns the number of bytes that were counted for it.
  func cut() -> Int {
    isCut = true
    cutBytes = collected.count
    collected = []
    return cutBytes
  }

  /// Takes note of a piece of a body that is dropped.
  func cut(_ count: Int, _ limits: BLIPLimits) throws(BLIPError) {
    cutBytes += count
    guard cutBytes <= limits.cutMessageBytes else {
      throw BLIPError(.messageTooLong, "a message has more than \(limits.cutMessageBytes) bytes")
    }
  }

  /// Gives away the body as far as it came.
  func takeBody() -> ArraySlice<UInt8> {
    let body = Array(collected[bodyStart...])
    collected.removeSubrange(bodyStart...)
    return body[...]
  }

  /// Takes note of consumed bytes. Returns the number to acknowledge, if it is time for that.
  func consume(_ wireBytes: Int) -> Int? {
    window.consume(wireBytes, isAcknowledged: !isComplete && !isUnwanted)
  }

  /// Takes note of bytes that are dropped because nobody wants them. Throws if the peer goes on with them for too long.
  func drop(_ wireBytes: Int, _ limits: BLIPLimits) throws(BLIPError) {
    if try window.drop(wireBytes, limits) { isUnwanted = true }
  }
}

/// Where the parts of a message are.
enum MessageParts {
  static let tooShort = BLIPError(.badProperties, "a message ends inside its properties")

  /// Where the properties are. Nil if their length hasn't come; their end may lie behind the end of `bytes`.
  static func properties(of bytes: ArraySlice<UInt8>, _ limits: BLIPLimits) throws(BLIPError) -> Range<Int>? {
    var length = 0
    guard let count = bytes.withUnsafeBytes({ $0.varint(at: &length) }) else {
      guard bytes.count < Varint.maximumBytes else {
        throw BLIPError(.badVarint, "the length of the properties isn't a varint")
      }
      return nil
    }
    guard count <= UInt64(clamping: limits.propertiesBytes) else {
      throw BLIPError(
        .propertiesTooLong,
        "the properties of a message have \(count) bytes, more than \(limits.propertiesBytes)")
    }
    let start = bytes.startIndex + length
    return start..<start + Int(count)
  }

  /// Takes a message of one frame apart. Its parts are slices of the frame.
  static func message(_ frame: Frame, _ limits: BLIPLimits) throws(BLIPError) -> BLIPMessage {
    let bytes = frame.payload
    guard bytes.count <= limits.messageBytes else {
      throw BLIPError(.messageTooLong, "a message has more than \(limits.messageBytes) bytes")
    }
    guard let range = try properties(of: bytes, limits), range.upperBound <= bytes.endIndex else {
      throw tooShort
    }
    return BLIPMessage(
      kind: frame.type.messageKind, number: frame.number, flags: frame.flags,
      properties: try BLIPProperties(received: bytes[range]), body: bytes[range.upperBound...])
  }
}

extension FrameType {
  var messageKind: BLIPMessage.Kind {
    switch self {
    case .request, .ackRequest: .request
    case .reply, .ackReply: .reply
    case .error: .error
    }
  }
}
