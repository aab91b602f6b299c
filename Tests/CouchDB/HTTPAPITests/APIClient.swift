import Bytes
import Fleece
import HTTP
@testable import HTTPAPI
import Storage
import TestSupport
import Touchstone

/// A service over databases in a temporary folder, and requests to it without sockets.
final class APIClient: Sendable {
  let service: DatabaseService
  private let directory: TemporaryDirectory?

  /// Makes a service over an empty folder whose databases have that engine.
  init(
    _ engine: EngineName = .lmdb, _ configuration: DatabaseServiceConfiguration = .init(),
    timer: any CallTimer = SystemTimer()
  ) throws {
    let directory = TemporaryDirectory()
    self.directory = directory
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    service = DatabaseService(FolderDatabases(folder), configuration, timer: timer)
  }

  /// Makes a service over a folder.
  init(
    folder: DatabaseFolder, letsClientsMake: Bool = true,
    _ configuration: DatabaseServiceConfiguration = .init(),
    timer: any CallTimer = SystemTimer()
  ) {
    directory = nil
    service = DatabaseService(
      FolderDatabases(folder, letsClientsMake: letsClientsMake), configuration, timer: timer)
  }

  deinit { service.stopReplications(seconds: 30) }

  /// Makes a service over databases that are open.
  init(
    _ databases: [String: Database], _ configuration: DatabaseServiceConfiguration = .init(),
    timer: any CallTimer = SystemTimer()
  ) {
    directory = nil
    service = DatabaseService(NamedDatabases(databases), configuration, timer: timer)
  }

  /// Asks, and waits for the head of the answer. The body of an answer that is streamed gathers in it.
  func ask(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8] = [],
    user: String? = nil, as context: UserContext? = nil
  ) throws -> Response {
    let response = try begin(method, target, headers: headers, body: body, user: user, as: context)
    response.waitForHead()
    return response
  }

  /// Asks, and returns before the answer begins.
  func begin(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8] = [],
    user: String? = nil, as context: UserContext? = nil
  ) throws -> Response {
    var fields = HTTPHeaders()
    for (name, value) in headers { fields.add(name, value) }
    return try begin(method, target, fields, BytesBody(body), user: user, as: context)
  }

  /// Asks with a body that comes from somewhere. `user` names an administrator. Without one it is nobody where there are logins, and
  /// everybody where there are none.
  func begin(
    _ method: String, _ target: String, _ fields: HTTPHeaders, _ body: any HTTPBodySource,
    user: String? = nil,
    as context: UserContext? = nil
  ) throws -> Response {
    let response = Response()
    let nobody = service.configuration.logins == nil ? UserContext.everybody : .anonymous
    let context = context ?? user.map { .admin($0) } ?? nobody
    guard let target = HTTPTarget(Array(target.utf8)) else { throw InvalidTarget(target: target) }
    service.answer(
      HTTPRequest(
        method: method, target: target, headers: fields, body: body, context: context, origin: response)
    ) { answer in response.begin(answer, isHead: method == "HEAD") }
    return response
  }

  struct InvalidTarget: Error { let target: String }
}

/// An answer as it arrives.
final class Response: HTTPRequestOrigin {
  var isSecure: Bool { false }
  var network: ByteString { ByteString([]) }
  private struct State {
    var answer: HTTPAnswer?
    var body: [UInt8] = []
    var isWhole = false
    var hasFailed = false
    var onCancel: [@Sendable () -> Void] = []
    var isCancelled = false
  }

  private let state = Lock(State())
  private let head = BlockingWaiter<Bool>()
  private let end = BlockingWaiter<Bool>()

  /// The length that its head has; nil if it says none.
  var length: Int? {
    switch state.withLock({ $0.answer?.body }) {
    case .bytes(let bytes): bytes.count
    case .stream(let length, _): length
    default: nil
    }
  }

  fileprivate func begin(_ answer: HTTPAnswer, isHead: Bool) {
    state.withLock { $0.answer = answer }
    head.finish(true)
    switch answer.body {
    case .bytes(let bytes):
      state.withLock {
        $0.body = isHead ? [] : bytes; $0.isWhole = true
      }
      end.finish(true)
    case .stream(_, let start):
      if isHead { finish(isWhole: true) } else { start(GatheringSink(response: self)) }
    case .other: break
    }
  }

  fileprivate func waitForHead() { _ = head.wait() }
  fileprivate func add(_ bytes: [UInt8]) { state.withLock { $0.body += bytes } }
  fileprivate func finish(isWhole: Bool) {
    state.withLock {
      $0.isWhole = isWhole; $0.hasFailed = !isWhole
    }
    end.finish(true)
  }

  var status: Int { state.withLock { $0.answer?.status ?? 0 } }
  var headers: [HTTPHeader] { state.withLock { $0.answer?.headers ?? [] } }
  func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
  /// What has arrived of the body.
  var arrived: [UInt8] { state.withLock { $0.body } }
  /// Whether the body is there, or was cut off.
  var hasEnded: Bool { state.withLock { $0.isWhole || $0.hasFailed } }
  /// Whether the body was cut off.
  var hasFailed: Bool { state.withLock { $0.hasFailed } }
  /// Waits for the end of the body, and returns it.
  func body() -> [UInt8] {
    if !hasEnded { _ = end.wait() }
    return arrived
  }
  func json() throws -> JSONValue {
    try body().withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) }
  }
  var text: String { String(decoding: body(), as: UTF8.self) }

  /// The client goes away.
  func cancel() {
    let bodies = state.withLock { state in
      state.isCancelled = true
      defer { state.onCancel = [] }
      return state.onCancel
    }
    for body in bodies { body() }
  }

  var isCancelled: Bool { state.withLock { $0.isCancelled } }
  func onCancel(_ body: @escaping @Sendable () -> Void) {
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.onCancel.append(body) }
      return state.isCancelled
    }
    if isCancelled { body() }
  }
}

private final class GatheringSink: HTTPBodySink {
  private let response: Response
  init(response: Response) { self.response = response }
  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {
    if response.isCancelled { throw .clientGone }
    response.add(bytes)
  }
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    if response.isCancelled { return completion(.clientGone) }
    response.add(bytes)
    completion(nil)
  }
  func finish() { response.finish(isWhole: true) }
  func fail() { response.finish(isWhole: false) }
}

/// The body of a request, all there.
struct BytesBody: HTTPBodySource {
  private let rest: Lock<[UInt8]>
  let length: Int?

  init(_ bytes: [UInt8]) {
    rest = Lock(bytes)
    length = bytes.count
  }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    completion(.success(take()))
  }

  func read() throws(HTTPBodyError) -> [UInt8]? { take() }

  private func take() -> [UInt8]? {
    rest.withLock { rest in
      defer { rest = [] }
      return rest.isEmpty ? nil : rest
    }
  }
}

/// A body that nobody should want.
final class UnreadBody: HTTPBodySource {
  private let wasRead = Lock(false)
  var isRead: Bool { wasRead.withLock { $0 } }
  var length: Int? { 8 << 20 }
  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    wasRead.withLock { $0 = true }
    completion(.success(nil))
  }
  func read() throws(HTTPBodyError) -> [UInt8]? {
    wasRead.withLock { $0 = true }
    return nil
  }
}
