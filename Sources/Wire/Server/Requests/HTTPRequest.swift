import Bytes
import HTTP

/// A request, as a handler sees it.
package struct HTTPRequest: Sendable {
  let exchange: Exchange
  let head: RequestHead
  /// Who asks; nil if the server lets everybody in.
  package let user: String?

  /// The method, as it came: methods are case-sensitive.
  package var method: String { head.method }
  /// The target: raw bytes, path, query.
  package var target: HTTPTarget { head.target }
  /// The headers.
  package var headers: HTTPHeaders { head.headers }
  /// The body.
  package var body: HTTPRequestBody { HTTPRequestBody(exchange: exchange) }
  /// The client's address.
  package var peer: PeerAddress { exchange.connection.peer }
  /// The client's certificate, which was checked; nil if there is none.
  package var clientCertificate: ClientCertificate? { exchange.connection.certificate }
  /// Whether the connection is encrypted.
  package var isSecure: Bool { exchange.core.configuration.tls != nil }

  /// Whether nobody waits for the answer any more: the client is gone, was cut off, the handler has had its time, or the server
  /// stops.
  package var isCancelled: Bool { exchange.isCancelled }

  /// Calls `body` once when nobody waits for the answer any more, on a thread for that: it must not wait for anything. After the
  /// answer was sent it isn't called.
  package func onCancel(_ body: @escaping @Sendable () -> Void) { exchange.onCancel(body) }
}

/// Gives the answer to one request. If it is released without an answer, the client gets 500.
package final class HTTPResponder: Sendable {
  private let exchange: Exchange

  init(_ exchange: Exchange) { self.exchange = exchange }

  deinit { exchange.answerIfMissing() }

  /// Answers. Any thread may call, also after the handler has returned. Only the first answer counts.
  package func answer(_ answer: HTTPAnswer) { exchange.answer(answer) }
}

/// Answers requests.
package protocol HTTPHandler: Sendable {
  /// The answer, if it can be given at once; nil otherwise, and `handle` is called. It is called on a thread that serves
  /// many connections: it must not wait for anything.
  func answerAtOnce(_ request: HTTPRequest) -> HTTPAnswer?

  /// What a request takes of the server. It is called on a thread that serves many connections: it must not wait for anything.
  func workload(of request: HTTPRequest) -> HTTPWorkload

  /// The answer to a request whose client may not ask, from the server's own answer. It is called on a thread that serves many
  /// connections: it must not wait for anything.
  func refusal(_ answer: HTTPAnswer, of request: HTTPRequest) -> HTTPAnswer

  /// Answers now or later. It is called on a handler's thread, and may wait.
  func handle(_ request: HTTPRequest, _ responder: HTTPResponder)
}

extension HTTPHandler {
  /// Nothing is answered at once.
  package func answerAtOnce(_ request: HTTPRequest) -> HTTPAnswer? { nil }

  /// Any request may take long.
  package func workload(of request: HTTPRequest) -> HTTPWorkload { .long }

  /// The server's own answer.
  package func refusal(_ answer: HTTPAnswer, of request: HTTPRequest) -> HTTPAnswer { answer }
}

/// A handler of one closure.
struct ClosureHandler: HTTPHandler {
  let body: @Sendable (HTTPRequest, HTTPResponder) -> Void
  func handle(_ request: HTTPRequest, _ responder: HTTPResponder) { body(request, responder) }
}
