import System
import Transport

/// A request with all that it takes: the login, redirects, and another try with a new cookie. The sink sees only the last answer.
final class HTTPExchange: HTTPTask, HTTPAnswerSink {
  private enum Next {
    case redirect(WebSocketURL)
    case again
  }

  private struct State {
    var request: HTTPClientRequest
    var transfer: CurlTransfer?
    var isCancelled = false
    var hasEnded = false
    var redirects = 0
    var hasRenewed = false
    var sendsSecrets = true
    var generation = 0
    /// What follows this answer, which the sink doesn't see.
    var next: Next?
  }

  private let client: HTTPClient
  private let sink: any HTTPAnswerSink
  private let state: Lock<State>

  init(_ client: HTTPClient, _ request: HTTPClientRequest, _ sink: any HTTPAnswerSink) {
    self.client = client
    self.sink = sink
    state = Lock(State(request: request))
  }

  func begin() {
    let (request, sendsSecrets) = state.withLock { ($0.request, $0.sendsSecrets) }
    guard sendsSecrets else { return start(request) }
    let credentials = client.credentials { [self] error in
      if let error { finish(error) } else { begin() }
    }
    switch credentials {
    case .later: break
    case .failed(let error): finish(error)
    case .headers(let headers, let generation):
      state.withLock { $0.generation = generation }
      var request = request
      request.headers += headers
      start(request)
    }
  }

  private func start(_ request: HTTPClientRequest) {
    let transfer: CurlTransfer
    do throws(TransportClose) {
      transfer = try client.transfer(request, self, sendsSecrets: state.withLock { $0.sendsSecrets })
    } catch { return finish(error) }
    let isCancelled = state.withLock { state in
      state.transfer = transfer
      return state.isCancelled
    }
    guard !isCancelled else { return finish(.cancelled) }
    client.post(.add(transfer))
    // One that came between both hasn't found it.
    if state.withLock({ $0.isCancelled }) { client.post(.cancel(transfer)) }
  }

  private func finish(_ error: TransportClose?) {
    let (isFirst, redirects) = state.withLock { state in
      defer {
        state.hasEnded = true
        state.transfer = nil
      }
      return (!state.hasEnded, state.redirects)
    }
    var error = error
    // The URL is the server's, and not the user's.
    if redirects > 0, let failed = error, failed.domain == .network,
      failed.code == NetworkCode.invalidURL.rawValue
    {
      error = .network(.invalidRedirect, failed.reason)
    }
    if isFirst { sink.end(error) }
  }

  // MARK: The task

  func resume() {
    if let transfer = state.withLock({ $0.transfer }) { client.post(.resume(transfer)) }
  }

  func cancel() {
    let transfer = state.withLock { state in
      state.isCancelled = true
      return state.transfer
    }
    if let transfer { client.post(.cancel(transfer)) }
  }

  // MARK: The answer

  func begin(_ head: HTTPAnswerHead) {
    client.note(head)
    let isLast = state.withLock { state in
      state.next = next(head, &state)
      return state.next == nil
    }
    if isLast { sink.begin(head) }
  }

  private func next(_ head: HTTPAnswerHead, _ state: inout State) -> Next? {
    switch head.status {
    case 401:
      guard !state.hasRenewed, state.sendsSecrets, client.renews(after: state.generation) else { return nil }
      state.hasRenewed = true
      return .again
    case 301, 302, 303, 307, 308:
      // Only the last two say that a request which changes something is to be made again as it was.
      let isSafe = ["GET", "HEAD"].contains(state.request.method)
      guard isSafe || head.status > 303, state.redirects < HTTPClient.maximumRedirects,
        let location = head.headers.first("location"), let url = state.request.url.resolve(location)
      else { return nil }
      let isHome = state.request.url.shares(secretsWith: url)
      guard isHome || isSafe && client.settings.followsRedirectsElsewhere else { return nil }
      state.redirects += 1
      if !isHome { state.sendsSecrets = false }
      return .redirect(url)
    default: return nil
    }
  }

  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    // A short text, which nobody reads.
    if state.withLock({ $0.next != nil }) { return true }
    return try sink.receive(bytes)
  }

  func end(_ error: TransportClose?) {
    let next = state.withLock { state in
      defer { state.next = nil }
      return error == nil && !state.isCancelled ? state.next : nil
    }
    switch next {
    case nil: finish(error)
    case .again:
      if case .source(let source) = state.withLock({ $0.request.body }) {
        do { try source.rewind() } catch { return finish(.network(.unknown, "\(error)")) }
      }
      begin()
    case .redirect(let url):
      state.withLock { $0.request.url = url }
      begin()
    }
  }
}
