import Bytes

/// A request, as a handler sees it.
package struct HTTPRequest: Sendable {
  /// The method, as it came: methods are case-sensitive.
  package var method: String
  /// The target: path and query, with the bytes as they came.
  package var target: HTTPTarget
  /// The headers.
  package var headers: HTTPHeaders
  /// The body.
  package var body: any HTTPBodySource
  /// Who asks.
  package var context: UserContext
  /// Where it came from.
  package let origin: any HTTPRequestOrigin

  /// Makes a request. See the properties.
  package init(
    method: String, target: HTTPTarget, headers: HTTPHeaders, body: any HTTPBodySource,
    context: UserContext, origin: any HTTPRequestOrigin
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.context = context
    self.origin = origin
  }

  /// The name of who asks; nil if everybody is let in, or if nobody has said a name yet.
  package var user: String? { context.name }

  /// Whether the connection is encrypted.
  package var isSecure: Bool { origin.isSecure }

  /// Whether nobody waits for the answer any more: the client is gone, was cut off, the handler has had its time, or the server
  /// stops.
  package var isCancelled: Bool { origin.isCancelled }

  /// Calls `body` once when nobody waits for the answer any more, on a thread for that: it must not wait for anything. After the
  /// answer was sent it isn't called.
  package func onCancel(_ body: @escaping @Sendable () -> Void) { origin.onCancel(body) }
}

/// The connection that a request came on, and whether its client still waits.
package protocol HTTPRequestOrigin: Sendable {
  /// Whether the connection is encrypted.
  var isSecure: Bool { get }
  /// The client's network, for limits of logins; empty if nobody knows.
  var network: ByteString { get }
  /// Whether nobody waits for the answer any more.
  var isCancelled: Bool { get }
  /// Calls `body` once when nobody waits any more, on any thread: at once if that is so already. After the answer was sent it isn't
  /// called.
  func onCancel(_ body: @escaping @Sendable () -> Void)
}
