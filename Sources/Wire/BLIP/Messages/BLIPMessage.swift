/// A message that was received.
package struct BLIPMessage: Sendable {
  /// What a message is.
  package enum Kind: Sendable { case request, reply, error }

  /// What it is.
  package let kind: Kind
  /// The number of the request, or of the request that it answers.
  package let number: UInt64
  /// The flags of its first frame.
  package let flags: FrameFlags
  /// The properties.
  package let properties: BLIPProperties
  /// The body. Empty if a sink got it, or if it was cut.
  package var body: ArraySlice<UInt8> = []
  /// Whether its body was longer than `BLIPLimits.messageBytes` and has been dropped.
  package var isCut = false

  /// What a request asks for: its property `Profile`.
  package var profile: String? { properties["Profile"] }

  /// Whether the sender wants no reply.
  package var isNoReply: Bool { flags.contains(.noReply) }

  /// The error, if the message is one.
  package var error: BLIPErrorReply? {
    guard kind == .error else { return nil }
    return BLIPErrorReply(
      domain: properties["Error-Domain"] ?? BLIPErrorReply.blipDomain,
      code: properties["Error-Code"].flatMap { Int($0) } ?? 0, text: String(decoding: body, as: UTF8.self))
  }
}

/// An error with which a peer answers a request.
package struct BLIPErrorReply: Error, Sendable, Hashable {
  /// The domain of errors of the protocol itself.
  package static let blipDomain = "BLIP"
  /// Nobody handles requests of this profile.
  package static let noHandler = BLIPErrorReply(domain: blipDomain, code: 404, text: "no handler for message")
  /// The handler gave no answer.
  package static let handlerFailed = BLIPErrorReply(domain: blipDomain, code: 501, text: "handler failed")

  /// Whose code it is: `BLIP`, `HTTP`, `LiteCore` and others.
  package var domain: String
  /// The code; 0 if the peer sent none, or none that is a number.
  package var code: Int
  /// The error in the peer's words. It may be empty.
  package var text: String

  /// Makes an error.
  package init(domain: String, code: Int, text: String = "") {
    self.domain = domain
    self.code = code
    self.text = text
  }
}

/// A request to send.
package struct BLIPRequest: Sendable {
  /// The properties. `Profile` says what is asked for.
  package var properties: BLIPProperties
  /// The body.
  package var body: BLIPBody
  /// Whether its frames go before those of other messages.
  package var isUrgent = false
  /// Whether it is compressed. Small messages and compressed blobs don't gain.
  package var isCompressed = false
  /// Whether the peer is told to send no reply.
  package var isNoReply = false

  /// Makes a request. The property `Profile` comes first.
  package init(_ profile: String, _ properties: BLIPProperties = [:], body: BLIPBody = .bytes([])) {
    var all: BLIPProperties = ["Profile": profile]
    all.append(properties)
    self.properties = all
    self.body = body
  }
}

/// A reply to send.
package struct BLIPReply: Sendable {
  /// The properties.
  package var properties: BLIPProperties
  /// The body.
  package var body: BLIPBody
  /// Whether its frames go before those of other messages. A reply to an urgent request is urgent without it.
  package var isUrgent = false
  /// Whether it is compressed.
  package var isCompressed = false
  /// Whether it is an error.
  let isError: Bool

  /// Makes a reply.
  package init(_ properties: BLIPProperties = [:], body: BLIPBody = .bytes([])) {
    self.properties = properties
    self.body = body
    isError = false
  }

  /// Makes an error.
  package init(_ error: BLIPErrorReply) {
    properties = ["Error-Domain": error.domain, "Error-Code": String(error.code)]
    body = .bytes(Array(error.text.utf8))
    isError = true
  }
}
