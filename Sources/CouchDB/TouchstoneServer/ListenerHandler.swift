import Bytes
import HTTP
import HTTPAPI
import Server
import Storage

/// Answers the requests of a listener: `/NAME/_blipsync` becomes a WebSocket, and the rest goes to the HTTP API.
final class ListenerHandler: HTTPHandler {
  private let sync: SyncHandler
  /// Nil if the listener only replicates.
  private let service: DatabaseService?
  private let crossOrigin: CrossOriginRules

  init(sync: SyncHandler, service: DatabaseService?, crossOrigin: CrossOriginRules) {
    self.sync = sync
    self.service = service
    self.crossOrigin = crossOrigin
  }

  func handle(_ request: HTTPRequest, _ responder: HTTPResponder) {
    guard let service, !SyncHandler.isReplication(request) else {
      return sync.handle(request, responder)
    }
    service.answer(request) { responder.answer($0) }
  }

  func workload(of request: HTTPRequest) -> HTTPWorkload {
    // A WebSocket is only begun here.
    guard service != nil, !SyncHandler.isReplication(request) else { return .reading }
    let workload = DatabaseService.workload(request.method, request.target)
    // Documents with attachments come as multipart bodies.
    return workload == .writing && request.headers.first("content-type")?.hasPrefix("multipart/") == true
      ? .long : workload
  }

  func refusal(_ answer: HTTPAnswer, of request: HTTPRequest) -> HTTPAnswer {
    guard service != nil else { return answer }
    var answer = answer
    // A page of another origin sees why it was refused.
    answer.headers += crossOrigin.answerHeaders(request) + HTTPHeader.identity(of: request)
    return answer
  }
}

/// The logins of a listener, as the HTTP API wants them.
struct ListenerSessions: LoginSessions {
  let authenticator: SessionAuthenticator
  var cookieSeconds: Int { authenticator.seconds }

  func check(
    _ user: String, _ password: String, from network: ByteString,
    _ completion: @escaping @Sendable (LoginResult) -> Void
  ) {
    authenticator.check(user, password, from: network) { login in
      switch login {
      case .right(let context, let cookie): completion(.success(AcceptedLogin(context, cookie: cookie)))
      case .refused(let status, let headers, let reason):
        let seconds = headers.first { $0.name == "Retry-After" }?.value
        completion(.failure(LoginRefusal(status, reason, retryAfter: seconds)))
      }
    }
  }

  func context(of user: String) -> UserContext? { authenticator.context(of: user) }
  func renewal(of cookie: String) -> String? { authenticator.renewal(of: cookie) }
  func end(_ cookie: String) { authenticator.end(cookie) }
}
