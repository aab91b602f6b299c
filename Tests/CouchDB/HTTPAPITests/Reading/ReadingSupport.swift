import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Touchstone

@testable import HTTPAPI

/// A service over one empty database `db`.
struct ReadingClient {
  let database: Database
  let client: APIClient
  let timer: ManualTimer
  private let databases = TestDatabases()

  init(_ engine: EngineName, _ configuration: DatabaseServiceConfiguration = .init()) throws {
    database = try databases.open(engine)
    timer = ManualTimer()
    client = APIClient(["db": database], configuration, timer: timer)
  }

  /// A sequence of the database as clients get it.
  func sequence(_ number: Int) -> JSONValue { .string("\(number)-g\(database.publicUUID.prefix(8))") }

  func get(_ target: String, headers: [(String, String)] = []) throws -> Response {
    try client.ask("GET", "/db/" + target, headers: headers)
  }

  func post(_ target: String, _ body: String) throws -> Response {
    try client.ask(
      "POST", "/db/" + target, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
  }

  /// Saves `{"n": …}` under each ID.
  func save(_ ids: String...) throws {
    for (index, id) in ids.enumerated() { try database.save(id, ["n": .int(Int64(index))]) }
  }

  /// Adds a revision whose ID is known.
  func apply(_ id: String, _ history: String..., isDeleted: Bool = false, body: JSONObject = [:]) throws {
    try database.apply(
      PulledRevision(id: id, history: history, isDeleted: isDeleted, body: .value(.object(body))))
  }

  /// Three documents with one revision each, whose IDs are known, one tombstone and one conflict. The conflict has the sequence 6.
  func saveKnown() throws {
    try apply("a", "1-a", body: ["x": 1])
    try apply("b", "1-b", body: ["x": 2])
    try apply("gone", "2-g", "1-g", isDeleted: true, body: ["left": true])
    try apply("c", "1-c", body: ["x": 3])
    try apply("conf", "2-x", "1-y", body: ["x": 4])
    try apply("conf", "2-w", "1-y", body: ["x": 5])
  }
}

/// A text without the marks that sequences have.
func withoutMarks(_ text: String) -> String { text.replacing(/-g[0-9a-f]{8}"/, with: "\"") }

extension Response {
  /// The text without the marks that sequences have.
  var unmarkedText: String { withoutMarks(text) }
}

/// The head and the rows of an answer, without line ends.
func lines(_ text: String) -> [String] {
  text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map(String.init)
}

/// An answer to a client that takes nothing until it is released.
final class StalledResponse: HTTPRequestOrigin {
  var isSecure: Bool { false }
  var network: ByteString { ByteString([]) }
  fileprivate struct State {
    var isReleased = false
    var isGone = false
    var body: [UInt8] = []
    var waiting: [@Sendable (HTTPBodyError?) -> Void] = []
    var isStalled = false
    var isWhole = false
    var hasFailed = false
    var onCancel: [@Sendable () -> Void] = []
  }

  fileprivate let state = Lock(State())
  private let end = BlockingWaiter<Bool>()

  func waitUntilStalled() { eventually { state.withLock { $0.isStalled } } }

  /// Takes what waits, and all that comes.
  func release() {
    let waiting = state.withLock { state in
      state.isReleased = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for completion in waiting { completion(nil) }
  }

  /// The client goes away, with what waits for it.
  func goAway() {
    let waiting = state.withLock { state in
      state.isGone = true
      defer { state.waiting = [] }
      return state.waiting
    }
    for completion in waiting { completion(.clientGone) }
    cancel()
  }

  var arrived: [UInt8] { state.withLock { $0.body } }
  var hasFailed: Bool { state.withLock { $0.hasFailed } }
  var hasEnded: Bool { state.withLock { $0.isWhole || $0.hasFailed } }

  func body() -> [UInt8] {
    _ = end.wait()
    return arrived
  }

  fileprivate func take(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    let (isTaken, isGone) = state.withLock { state in
      state.body += bytes
      if !state.isReleased, !state.isGone {
        state.isStalled = true
        state.waiting.append(completion)
      }
      return (state.isReleased, state.isGone)
    }
    if isGone { return completion(.clientGone) }
    if isTaken { completion(nil) }
  }

  fileprivate func finish(isWhole: Bool) {
    state.withLock {
      $0.isWhole = isWhole; $0.hasFailed = !isWhole
    }
    end.finish(true)
  }

  var isCancelled: Bool { false }
  func onCancel(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.onCancel.append(body) } }

  /// The client goes away.
  func cancel() {
    for body in state.withLock({ $0.onCancel }) { body() }
  }
}

private struct StallingSink: HTTPBodySink {
  let response: StalledResponse

  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {
    let waiter = BlockingWaiter<HTTPBodyError?>()
    response.take(bytes) { waiter.finish($0) }
    if let error = waiter.wait() { throw error }
  }
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    response.take(bytes, completion)
  }
  func finish() { response.finish(isWhole: true) }
  func fail() { response.finish(isWhole: false) }
}

extension APIClient {
  /// Asks on a thread of its own, as a client that takes nothing until it is released.
  func stall(_ method: String, _ target: String, body: String = "") throws -> StalledResponse {
    let response = StalledResponse()
    guard let target = HTTPTarget(Array(target.utf8)) else { throw InvalidTarget(target: target) }
    var headers = HTTPHeaders()
    headers.add("content-type", "application/json")
    let request = HTTPRequest(
      method: method, target: target, headers: headers, body: BytesBody(Array(body.utf8)),
      context: .everybody,
      origin: response)
    let workers = Workers()
    workers.enqueue { [service] in
      service.answer(request) { answer in
        switch answer.body {
        case .stream(_, let start): start(StallingSink(response: response))
        case .bytes(let bytes):
          response.state.withLock { $0.body = bytes }
          response.finish(isWhole: true)
        case .other: break
        }
      }
    }
    return response
  }
}
