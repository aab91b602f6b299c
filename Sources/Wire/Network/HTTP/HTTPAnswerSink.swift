import HTTP
import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// The head of an answer.
package struct HTTPAnswerHead: Sendable {
  /// The status, 200 to 999.
  package var status: Int
  package var headers = HTTPHeaders()

  package init(status: Int) { self.status = status }

  /// The seconds that `Retry-After` gives, or until its date, at least 0; nil if the header isn't there or can't be read.
  package var retryAfter: Double? {
    guard let text = headers.first("retry-after")?.trimmed else { return nil }
    if let seconds = UInt32(text) { return Double(seconds) }
    return Self.date(text).map { max(0, $0 - Double(time(nil))) }
  }

  /// The seconds since 1970 of a date as `Fri, 31 Dec 1999 23:59:59 GMT`.
  private static func date(_ text: String) -> Double? {
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    let parts = text.split(separator: " ", omittingEmptySubsequences: false)
    guard parts.count == 6, parts[5] == "GMT", let day = Int32(parts[1]), (1...31).contains(day),
      let month = months.firstIndex(of: String(parts[2])), let year = Int32(parts[3]),
      (1970...9999).contains(year)
    else { return nil }
    let clock = parts[4].split(separator: ":").compactMap { UInt8($0) }.map { Int32($0) }
    guard clock.count == 3, clock[0] < 24, clock[1] < 60, clock[2] < 61 else { return nil }
    var date = tm()
    (date.tm_year, date.tm_mon, date.tm_mday) = (year - 1900, Int32(month), day)
    (date.tm_hour, date.tm_min, date.tm_sec) = (clock[0], clock[1], clock[2])
    return Double(timegm(&date))
  }
}

/// Takes the answer to a request. Calls come from the client's thread, one at a time: they mustn't wait.
package protocol HTTPAnswerSink: AnyObject, Sendable {
  /// The head has come.
  func begin(_ head: HTTPAnswerHead)
  /// Takes bytes of the body. Returns false if nothing more should come until `HTTPTask.resume()`. An error ends the
  /// request.
  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool
  /// The answer is whole, or the request has failed. Called once, as the last one.
  func end(_ error: TransportClose?)
}

/// A request under way.
package protocol HTTPTask: AnyObject, Sendable {
  /// Goes on after a sink has returned false.
  func resume()
  /// Ends the request, if it hasn't ended. The sink is told, with the error ECANCELED.
  func cancel()
}

/// An answer that is whole.
package struct HTTPClientAnswer: Sendable {
  package var head: HTTPAnswerHead
  package var body: [UInt8]

  package var status: Int { head.status }
}

/// Collects an answer with a bound.
final class CollectingSink: HTTPAnswerSink, @unchecked Sendable {
  // Used on the client's thread only.
  private var head = HTTPAnswerHead(status: 0)
  private var body: [UInt8] = []
  private let limit: Int
  private let done: @Sendable (Result<HTTPClientAnswer, TransportClose>) -> Void

  init(limit: Int, _ done: @escaping @Sendable (Result<HTTPClientAnswer, TransportClose>) -> Void) {
    self.limit = limit
    self.done = done
  }

  func begin(_ head: HTTPAnswerHead) { self.head = head }

  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    guard bytes.count <= limit - body.count else { throw TransportClose.tooLong(limit) }
    body.append(contentsOf: bytes)
    return true
  }

  func end(_ error: TransportClose?) {
    if let error { done(.failure(error)) } else { done(.success(HTTPClientAnswer(head: head, body: body))) }
  }
}

extension TransportClose {
  /// An answer is longer than it may be.
  package static func tooLong(_ limit: Int) -> TransportClose {
    .network(.unknown, "an answer has more than \(limit) bytes")
  }

  /// An answer isn't HTTP, or isn't whole in a way that another try doesn't mend.
  static func malformed(_ reason: String) -> TransportClose { .network(.unknown, reason) }
}
