import Fleece
import HTTP
import Views

/// A closure that writes the body of an answer, piece by piece, on the thread that answers. What it throws before the first piece has
/// left becomes the answer; what it throws later cuts the body off. A nil `length` is sent in chunks.
struct WrittenBody: HTTPOtherBody {
  var length: Int?
  var write: @Sendable (AnswerOutput) throws -> Void
}

/// Makes the answer that is given in the place of this one, and calls its argument with it once, from any thread.
struct LaterAnswer: HTTPOtherBody {
  var make: @Sendable (@escaping @Sendable (HTTPAnswer) -> Void) -> Void
}

extension HTTPAnswer.Body {
  /// A body that is written piece by piece. See `WrittenBody`.
  static func written(length: Int? = nil, _ write: @escaping @Sendable (AnswerOutput) throws -> Void) -> Self
  {
    .other(WrittenBody(length: length, write: write))
  }

  /// What writes the body; nil if it isn't written.
  var written: WrittenBody? {
    if case .other(let body) = self { body as? WrittenBody } else { nil }
  }
}

extension HTTPAnswer {
  /// An answer that something in the background makes. No thread waits for it.
  init(later: @escaping @Sendable (@escaping @Sendable (HTTPAnswer) -> Void) -> Void) {
    self.init(status: 500, body: .other(LaterAnswer(make: later)))
  }

  /// What makes the answer in the place of this one; nil: this is the answer.
  var later: LaterAnswer? {
    if case .other(let body) = body { body as? LaterAnswer } else { nil }
  }

  /// An answer of JSON text, which ends with a line feed.
  static func json(text: [UInt8], status: Int = 200, headers: [HTTPHeader] = []) -> HTTPAnswer {
    HTTPAnswer(status: status, headers: [.json] + headers, body: .bytes(text))
  }

  /// An answer of a JSON value.
  static func json(_ value: JSONValue, status: Int = 200, headers: [HTTPHeader] = []) throws -> HTTPAnswer {
    json(text: try value.jsonText() + [UInt8(ascii: "\n")], status: status, headers: headers)
  }

  /// An answer of JSON that is written piece by piece.
  static func json(
    status: Int = 200, headers: [HTTPHeader] = [], writing: @escaping @Sendable (AnswerOutput) throws -> Void
  ) -> HTTPAnswer {
    HTTPAnswer(status: status, headers: [.json] + headers, body: .written(writing))
  }

  /// `{"ok":true}`
  static func ok(status: Int = 200, headers: [HTTPHeader] = []) -> HTTPAnswer {
    json(text: Array("{\"ok\":true}\n".utf8), status: status, headers: headers)
  }

  /// The methods that the server has.
  static let methods = HTTPAnswer(
    status: 204, headers: [.init("Allow", "GET,HEAD,POST,PUT,DELETE,COPY,OPTIONS")])

  /// The answer of an error.
  static func error(_ error: CouchDBError, headers: [HTTPHeader] = []) -> HTTPAnswer {
    json(text: error.json, status: error.status, headers: headers)
  }

  /// The answer to what the server itself refuses, with the word that CouchDB has for the status.
  package static func error(status: Int, reason: String) -> HTTPAnswer {
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
}

extension HTTPHeader {
  static let json = HTTPHeader("Content-Type", "application/json")
}
