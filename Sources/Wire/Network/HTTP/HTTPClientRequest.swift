/// A request of HTTP.
package struct HTTPClientRequest: Sendable {
  /// The bytes that are sent with a request.
  package enum Body: Sendable {
    case none
    case bytes([UInt8])
    /// Bytes that are read while they are sent.
    case source(any HTTPRequestSource)
  }

  /// What is done with the encoding of the answer.
  package enum Decoding: Sendable {
    /// The answer may come as gzip, and is decoded.
    case decoded
    /// It may come as gzip, and stays that. The head says so.
    case encoded
    /// It isn't asked for.
    case none
  }

  package var method: String
  package var url: WebSocketURL
  package var headers: [(name: String, value: String)] = []
  package var body = Body.none
  package var decoding = Decoding.none
  /// In the place of that of the settings, if it isn't nil.
  package var idleTimeout: Double?

  package init(_ method: String, _ url: WebSocketURL) {
    self.method = method
    self.url = url
  }
}

/// Gives the body of a request. It is used on one thread at a time. It may wait for a file, but not for a peer.
package protocol HTTPRequestSource: AnyObject, Sendable {
  /// The number of bytes; nil if it isn't known before the end.
  var length: UInt64? { get }
  /// Reads bytes into the buffer, which isn't empty, and returns how many there were: 0 at the end.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int
  /// Begins again: the request is sent once more.
  func rewind() throws
}
