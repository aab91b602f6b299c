// libFuzzer's target for the API over HTTP: a multipart body has the same parts however its bytes arrive, and whatever a client asks,
// the answer isn't an error of the server.
//
//   input     := choices:byte  ( multipart | request )     choices: 1 multipart
//   multipart := bytes                                      2 small limits; the rest: how many bytes arrive at a time
//   request   := target LF body                             2, 4, 8 the method; 16, 32 the type of the body; 64 what the client
//                                                           takes; 128 a revision in If-Match

import Bytes
import FuzzDriver
import HTTP
import HTTPAPI
import Storage
import Touchstone

@main enum FuzzHTTP: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    guard let choices = input.first else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
    if choices & 1 != 0 { testMultipart(bytes, choices) } else { testRequest(bytes, choices) }
  }

  // MARK: Multipart

  private static func testMultipart(_ bytes: UnsafeRawBufferPointer, _ choices: UInt8) {
    var limits = MultipartParser.Limits()
    if choices & 2 != 0 { (limits.headerBytes, limits.parts, limits.preambleBytes) = (40, 3, 20) }
    let whole = parts(bytes, max(1, bytes.count), limits)
    let pieces = parts(bytes, 1 + Int(choices >> 2), limits)
    precondition(
      whole.error == pieces.error, "the pieces matter: \(whole.error as Any), \(pieces.error as Any)")
    if whole.error == nil { precondition(whole.parts == pieces.parts, "the pieces matter") }
    precondition(whole.parts.count <= limits.parts, "more parts than allowed")
  }

  private static func parts(_ bytes: UnsafeRawBufferPointer, _ step: Int, _ limits: MultipartParser.Limits)
    -> (parts: [[UInt8]], error: MultipartError?)
  {
    var found: [[UInt8]] = []
    do {
      var parser = try MultipartParser(boundary: "b", limits: limits)
      var offset = 0
      while offset < bytes.count {
        let end = min(bytes.count, offset + step)
        try parser.parse(UnsafeRawBufferPointer(rebasing: bytes[offset..<end])) { event in
          switch event {
          case .begin(let headers):
            found.append(headers.all.flatMap { Array("\($0.name):\($0.value);".utf8) })
          case .bytes(let bytes): found[found.count - 1] += bytes
          case .end: found[found.count - 1].append(0)
          }
        }
        offset = end
      }
      try parser.finish()
    } catch let error as MultipartError { return (found, error) } catch { preconditionFailure("\(error)") }
    return (found, nil)
  }

  // MARK: Requests

  private static let methods = ["GET", "PUT", "POST", "DELETE", "HEAD", "COPY", "PATCH", "OPTIONS"]
  private static let types = ["", "application/json", "multipart/related; boundary=b", "text/plain"]

  private static func testRequest(_ bytes: UnsafeRawBufferPointer, _ choices: UInt8) {
    let line = bytes.prefix { $0 != 0x0A }
    guard let target = HTTPTarget(Array(line)) else { return }
    let body = Array(bytes.dropFirst(line.count + 1))
    do {
      let database = try Database.inMemory()
      defer { try? database.close() }
      let saved = try database.save("a", ["n": 1])
      let service = DatabaseService(OpenedDatabases(["db": database]))
      var headers = HTTPHeaders()
      let type = types[Int(choices >> 4 & 3)]
      if !type.isEmpty { headers.add("Content-Type", type) }
      headers.add("Accept", choices & 64 != 0 ? "multipart/mixed, multipart/related" : "application/json")
      if choices & 128 != 0 { headers.add("If-Match", saved.revisionID.description) }
      // Feeds don't end.
      if String(decoding: line, as: UTF8.self).contains("_changes") { return }
      let answered = Lock<HTTPAnswer?>(nil)
      service.answer(
        HTTPRequest(
          method: methods[Int(choices >> 1 & 7)], target: target, headers: headers, body: Body(body),
          context: .everybody,
          origin: Nobody())
      ) { answer in
        answered.withLock { $0 = answer }
        if case .stream(_, let start) = answer.body { start(Sink()) }
      }
      guard let answer = answered.withLock({ $0 }) else { preconditionFailure("no answer") }
      var text = ""
      if case .bytes(let bytes) = answer.body { text = String(decoding: bytes, as: UTF8.self) }
      // The program that runs scripts isn't there.
      precondition(answer.status != 500 || text.contains("os_process_error"), "\(answer.status) \(text)")
    } catch { preconditionFailure("\(error)") }
  }
}

private struct Body: HTTPBodySource {
  private let rest: Lock<[UInt8]?>
  let length: Int?

  init(_ bytes: [UInt8]) {
    rest = Lock(bytes)
    length = bytes.count
  }

  func read() throws(HTTPBodyError) -> [UInt8]? {
    rest.withLock { rest in
      defer { rest = nil }
      return rest
    }
  }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    completion(Result { () throws(HTTPBodyError) in try read() })
  }
}

private struct Sink: HTTPBodySink {
  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {}
  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    completion(.clientGone)
  }
  func finish() {}
  func fail() {}
}

private struct Nobody: HTTPRequestOrigin {
  var isSecure: Bool { false }
  var network: ByteString { ByteString([]) }
  var isCancelled: Bool { false }
  func onCancel(_ body: @escaping @Sendable () -> Void) {}
}
