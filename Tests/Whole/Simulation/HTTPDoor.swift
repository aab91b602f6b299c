import Fleece
import RawHTTP
import Touchstone
import TouchstoneServer
import TouchstoneSync

/// A server over one simulated database in this process, and a client of it with one connection, that logs in with each request.
final class HTTPDoor {
  /// An answer that says no.
  struct Refusal: Error {
    let status: Int
    let text: String

    /// The code that the same refusal has without HTTP.
    var code: String {
      switch status {
      case 403: "forbidden"
      case 404: "notFound"
      case 409: "conflict"
      case 503: "busy"
      default: "status \(status)"
      }
    }
  }

  private let listener: SyncListener
  private let client: RawClient

  init(_ database: Database) throws {
    var configuration = SyncListenerConfiguration(databases: ["test": database])
    configuration.servesHTTP = true
    listener = SyncListener(configuration)
    try listener.start()
    client = try RawClient(UInt16(listener.port ?? 0))
  }

  deinit { listener.stop(graceSeconds: 0) }

  /// Sends a request and returns the answer. `path` is in the database, and needs no escapes.
  ///
  /// - Throws: a `Refusal` for any status that isn't below 300.
  @discardableResult
  func ask(_ method: String, _ path: String, _ body: JSONValue? = nil) throws -> JSONValue {
    let bytes = try body?.jsonText() ?? []
    try client.send(
      "\(method) /test\(path) HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
        + "Content-Type: application/json\r\nContent-Length: \(bytes.count)\r\n\r\n")
    if !bytes.isEmpty { try client.send(bytes) }
    let answer = try client.answer(to: method)
    guard answer.status < 300 else { throw Refusal(status: answer.status, text: answer.text) }
    return answer.body.isEmpty ? .null : try JSONValue(json: answer.text)
  }

  /// The same; nil if there is no such thing.
  func find(_ path: String) throws -> JSONValue? {
    do { return try ask("GET", path) } catch let refusal as Refusal where refusal.status == 404 { return nil }
  }
}
