import HTTP

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
