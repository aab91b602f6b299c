import Fleece
import HTTP
import Views

/// What the API answers.
package struct APIAnswer: Sendable {
  /// The body of an answer.
  package enum Body: Sendable {
    /// All of it.
    case bytes([UInt8])
    /// A closure that writes it, piece by piece, on the thread that answers. What it throws before the first piece has left
    /// becomes the answer; what it throws later cuts the body off. A nil `length` is sent in chunks.
    case written(length: Int? = nil, @Sendable (AnswerOutput) throws -> Void)
    /// It is written when something happens, without a thread that waits. `start` is called once, unless the client asked
    /// with HEAD.
    case stream(length: Int? = nil, start: @Sendable (any HTTPBodySink) -> Void)
  }

  /// The status.
  package var status: Int
  /// The headers. `Content-Length`, `Transfer-Encoding`, `Date` and `Connection` are the server's own.
  package var headers: [HTTPHeader]
  /// The body.
  package var body: Body
  /// Whether the connection is closed after this answer.
  package var closesConnection = false
  /// Makes the answer that is given in the place of this one, and calls its argument with it once, from any thread. Nil: this is the
  /// answer.
  private(set) var later: (@Sendable (@escaping @Sendable (APIAnswer) -> Void) -> Void)?
  /// Whether the `start` of a stream returns at once. A thread waits for it that would otherwise be needed to call it.
  package var startsAtOnce = false

  /// Makes an answer.
  package init(status: Int, headers: [HTTPHeader] = [], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// An answer that something in the background makes. No thread waits for it.
  init(later: @escaping @Sendable (@escaping @Sendable (APIAnswer) -> Void) -> Void) {
    self.init(status: 500)
    self.later = later
  }

  /// An answer of JSON text, which ends with a line feed.
  static func json(text: [UInt8], status: Int = 200, headers: [HTTPHeader] = []) -> APIAnswer {
    APIAnswer(status: status, headers: [.json] + headers, body: .bytes(text))
  }

  /// An answer of a JSON value.
  static func json(_ value: JSONValue, status: Int = 200, headers: [HTTPHeader] = []) throws -> APIAnswer {
    json(text: try value.jsonText() + [UInt8(ascii: "\n")], status: status, headers: headers)
  }

  /// An answer of JSON that is written piece by piece.
  static func json(
    status: Int = 200, headers: [HTTPHeader] = [], writing: @escaping @Sendable (AnswerOutput) throws -> Void
  ) -> APIAnswer {
    APIAnswer(status: status, headers: [.json] + headers, body: .written(writing))
  }

  /// `{"ok":true}`
  static func ok(status: Int = 200, headers: [HTTPHeader] = []) -> APIAnswer {
    json(text: Array("{\"ok\":true}\n".utf8), status: status, headers: headers)
  }

  /// The methods that the server has.
  static let methods = APIAnswer(
    status: 204, headers: [.init("Allow", "GET,HEAD,POST,PUT,DELETE,COPY,OPTIONS")])

  /// The answer of an error.
  static func error(_ error: CouchDBError, headers: [HTTPHeader] = []) -> APIAnswer {
    json(text: error.json, status: error.status, headers: headers)
  }

  /// The answer to what the server itself refuses, with the word that CouchDB has for the status.
  package static func error(status: Int, reason: String) -> APIAnswer {
    let word =
      switch status {
      case 401: "unauthorized"
      case 403: "forbidden"
      case 404: "not_found"
      case 405: "method_not_allowed"
      case 413, 414, 431: "too_large"
      case 429: "too_many_requests"
      case 503: "service_unavailable"
      case 500...: "internal_server_error"
      default: "bad_request"
      }
    return error(CouchDBError(status, word, reason))
  }

  /// Whether it has a header of that name, whose case doesn't matter.
  func hasHeader(_ name: StaticString) -> Bool { headers.contains { $0.isNamed(name) } }
}

extension HTTPHeader {
  static let json = HTTPHeader("Content-Type", "application/json")
}
