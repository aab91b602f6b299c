import Bytes
import HTTP
import Storage

/// A request, as the API sees it.
package struct APIRequest: Sendable {
  /// The method, as it came.
  package var method: String
  /// The target: path and query, with the bytes as they came.
  package var target: HTTPTarget
  /// The headers.
  package var headers: HTTPHeaders
  /// The body.
  package var body: any HTTPBodySource
  /// Who asks; nil if everybody is let in, or if nobody has said a name yet.
  package var user: String?
  /// Whether the connection is encrypted.
  package var isSecure = false
  /// The client's network, for limits of logins; empty if nobody knows.
  package var network: ByteString
  /// Tells when nobody waits for the answer any more.
  package var cancellation: any APICancellation
  /// The memory that it takes for its body; nil if nobody counts.
  private(set) var memory: RequestMemory?

  /// Makes a request. See the properties.
  package init(
    method: String, target: HTTPTarget, headers: HTTPHeaders, body: any HTTPBodySource, user: String?,
    isSecure: Bool = false, network: ByteString = ByteString([]), cancellation: any APICancellation
  ) {
    self.method = method
    self.target = target
    self.headers = headers
    self.body = body
    self.user = user
    self.isSecure = isSecure
    self.network = network
    self.cancellation = cancellation
  }

  /// Takes the memory for its body from there, and counts the time that it waits for it.
  mutating func take(_ memory: RequestMemory, _ timer: any CallTimer) {
    self.memory = memory
    body = TimedBody(body, timer)
  }
}

/// Tells when nobody waits for an answer any more: the client is gone, or the server stops.
package protocol APICancellation: Sendable {
  /// Whether nobody waits any more.
  var isCancelled: Bool { get }
  /// Calls `body` once when nobody waits any more, on any thread: at once if that is so already. After the answer was sent it isn't
  /// called.
  func onCancel(_ body: @escaping @Sendable () -> Void)
}
