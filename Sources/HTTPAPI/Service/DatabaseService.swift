import Bytes
import Documents
import Fleece
import HTTP
import Logs
import Storage
import Touchstone
import Views

/// Answers the requests of clients of CouchDB over databases. It knows no sockets: requests and answers are values
/// (docs/http.md).
///
/// All calls may come from any thread.
package final class DatabaseService: Sendable {
  let configuration: DatabaseServiceConfiguration
  let catalog: any DatabaseCatalog
  let timer: any CallTimer
  /// What the root and `_uuids` say: a number of this service's life.
  let uuid = Hex.text((0..<16).map { _ in UInt8.random(in: 0...255) })

  /// Makes a service over the databases of a catalog.
  package init(
    _ catalog: any DatabaseCatalog, _ configuration: DatabaseServiceConfiguration = .init(),
    timer: any CallTimer = SystemTimer()
  ) {
    self.catalog = catalog
    self.configuration = configuration
    self.timer = timer
  }

  /// Answers a request, on this thread. It waits for files, for the body of the request, and for a client that takes the answer slowly.
  /// `respond` is called once, with a body of bytes or a stream, and may be called before the rest of the body is written.
  package func answer(_ request: APIRequest, _ respond: @escaping @Sendable (APIAnswer) -> Void) {
    let answer: APIAnswer
    do { answer = try route(request) } catch { answer = self.answer(to: error) }
    deliver(answer, to: request, respond)
  }

  /// The answer to an error that a request has led to.
  func answer(to error: any Error) -> APIAnswer {
    switch error {
    case let error as CouchDBError: .error(error)
    case let error as MethodNotAllowed: error.answer
    case let error as DocumentError: .error(CouchDBError(error))
    case HTTPBodyError.tooLong:
      .error(CouchDBError(413, "too_large", "the request entity is too large"))
    case HTTPBodyError.clientGone, HTTPBodyError.wrongLength:
      .error(CouchDBError(400, "bad_request", "the body of the request ended early"))
    default: .error(unexpected(error))
    }
  }

  private func unexpected(_ error: any Error) -> CouchDBError {
    Log.write(.warning, .network, "HTTP", "a request failed: \(LogText.of(error))")
    return CouchDBError(500, "internal_server_error", LogText.of(error))
  }

  // MARK: Delivering

  private func deliver(
    _ answer: APIAnswer, to request: APIRequest, _ respond: @escaping @Sendable (APIAnswer) -> Void
  ) {
    var answer = finished(answer, request)
    guard case .written(let length, let write) = answer.body else { return respond(answer) }
    let isHead = request.method == "HEAD"
    let head = answer
    let output = AnswerOutput {
      if isHead { return DiscardingSink() }
      let sink = BlockingWaiter<any HTTPBodySink>()
      var begun = head
      begun.body = .stream(length: length) { sink.finish($0) }
      respond(begun)
      return sink.wait()
    }
    do {
      try write(output)
      guard let bytes = try output.finish() else {
        if isHead {
          answer.body = .stream(length: length) { $0.fail() }
          respond(answer)
        }
        return
      }
      answer.body = .bytes(bytes)
      respond(answer)
    } catch {
      guard !isHead, output.hasBegun else {
        return respond(finished(self.answer(to: error), request))
      }
      if !(error is HTTPBodyError) {
        Log.write(.warning, .network, "HTTP", "an answer was cut off: \(LogText.of(error))")
      }
      output.fail()
    }
  }

  /// Adds the headers that every answer has.
  private func finished(_ answer: APIAnswer, _ request: APIRequest) -> APIAnswer {
    var answer = answer
    if !answer.hasHeader("Server") { answer.headers.append(.init("Server", "Touchstone/\(configuration.version)")) }
    if !answer.hasHeader("Cache-Control") { answer.headers.append(.init("Cache-Control", "must-revalidate")) }
    return answer
  }
}

/// Takes what nobody wants: the body of an answer to HEAD.
private struct DiscardingSink: HTTPBodySink {
  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {}
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) { completion(nil) }
  func finish() {}
  func fail() {}
}
