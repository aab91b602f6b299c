import Foundation
import Storage
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

private let folder = EnvironmentVariable.value("TOUCHSTONE_DATA").map { $0 + "/sync-transcripts" }

/// What a recorded server did with one connection.
private struct RecordedConnection {
  var request: [[String]] = []
  /// Nil if it closed without an answer.
  var answer: (line: String, headers: [[String]])?
}

/// A recorded session about the upgrade.
private struct RecordedSession: CustomTestStringConvertible, Sendable {
  let name: String
  let connections: [Int: RecordedConnection]
  let outcome: (domain: Int, code: Int)?

  var testDescription: String { name }

  static let all: [RecordedSession] = {
    guard let folder else { return [] }
    return ["v2", "v3"].flatMap { group in
      ((try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/\(group)")) ?? []).sorted()
        .filter { $0.hasPrefix("http-") || $0 == "oneshot-closed-without-answer" || $0 == "wrong-path-404" }
        .compactMap { RecordedSession("\(group)/\($0)", "\(folder)/\(group)/\($0)/transcript.jsonl") }
    }
  }()

  init?(_ name: String, _ path: String) {
    guard let data = FileManager.default.contents(atPath: path) else { return nil }
    var connections: [Int: RecordedConnection] = [:]
    var outcome: (Int, Int)?
    for line in data.split(separator: UInt8(ascii: "\n")) {
      guard let object = try? JSONSerialization.jsonObject(with: line) as? [String: Any] else { continue }
      let connection = object["conn"] as? Int
      switch object["kind"] as? String {
      case "tcp": if let connection { connections[connection, default: RecordedConnection()].request += [] }
      case "http":
        guard let connection, let headers = object["headers"] as? [[String]],
          let line = object["line"] as? String
        else { continue }
        if object["dir"] as? String == "C>S" {
          connections[connection, default: RecordedConnection()].request = headers
        } else {
          connections[connection, default: RecordedConnection()].answer = (line, headers)
        }
      case "status":
        guard object["who"] as? String == "client" else { continue }
        let error = object["error"] as? [String: Any]
        outcome = error.flatMap { error in
          (error["domain"] as? Int).flatMap { domain in (error["code"] as? Int).map { (domain, $0) } }
        }
      default: break
      }
    }
    (self.name, self.connections, self.outcome) = (name, connections, outcome)
  }

  /// The recorded answer, with what belongs to this request instead of that one.
  func answer(_ number: Int, _ head: String, _ port: Int) -> String? {
    guard let connection = connections[number], let answer = connection.answer else { return nil }
    let key = connection.request.first { $0[0] == "Sec-WebSocket-Key" }?[1] ?? ""
    let lines = answer.headers.map { header -> String in
      let value = header[1].replacingOccurrences(of: "127.0.0.1:4984", with: "127.0.0.1:\(port)")
      // A wrong value stays wrong.
      let isRight = header[0] == "Sec-WebSocket-Accept" && value == WebSocketKey.accept(key)
      return "\(header[0]): \(isRight ? acceptValue(head) : value)"
    }
    return ([answer.line] + lines).joined(separator: "\r\n") + "\r\n\r\n"
  }
}

/// The client against the answers of the recorded servers. Without the recordings this is skipped: TOUCHSTONE_DATA names
/// their directory.
@Suite(.enabled(if: folder != nil, "TOUCHSTONE_DATA isn't set"))
struct TranscriptTests {
  @Test func thereAreRecordings() {
    expect(RecordedSession.all.count >= 20)
  }

  @Test(arguments: RecordedSession.all)
  fileprivate func theOutcomeIsTheRecordedOne(_ session: RecordedSession) async throws {
    let portBox = Lock(0)
    let server = try RawServer { connection, number in
      let head = connection.readHead()
      // The proxy counts connections from 1.
      guard let answer = session.answer(number + 1, head, portBox.withLock { $0 }) else { return }
      connection.write(answer)
      if answer.contains(" 101 ") { _ = connection.readAll() }
    }
    portBox.withLock { $0 = server.port }

    let recorded = try #require(session.connections[1]?.request)
    let offered = recorded.first { $0[0] == "Sec-WebSocket-Protocol" }?[1] ?? "BLIP_3+CBMobile_2"
    var request = request(server.url(), offered.components(separatedBy: ","))
    let authorizations = session.connections.mapValues { connection in
      connection.request.first { $0[0] == "Authorization" }?[1]
    }
    // 2.8.7 waits for a challenge; master does when it is asked to.
    let isChallenged = authorizations[1] == .some(nil)
    if let value = authorizations.values.compactMap({ $0 }).first {
      let text = try #require(Data(base64Encoded: String(value.dropFirst("Basic ".count))))
      let parts = String(decoding: text, as: UTF8.self).components(separatedBy: ":")
      request.authentication = .basic(
        name: parts[0], password: Secret(parts[1]), answersChallenge: isChallenged)
    }
    if let cookie = recorded.first(where: { $0[0] == "Cookie" })?[1] {
      let parts = cookie.components(separatedBy: "=")
      request.authentication = .cookie(name: parts[0], value: Secret(parts[1]))
    }
    request.headers = recorded.filter { $0[0] == "User-Agent" || $0[0].hasPrefix("X-") }.map {
      ($0[0], $0[1])
    }

    // A session that goes on after an error connects again: as many times as were recorded.
    var result = await connect(request)
    if session.name.hasSuffix("503-then-ok") {
      for _ in 1...2 {
        let failure = try #require(result.failure)
        expect(failure.kind, equals: "http 503 transient")
        result = await connect(request)
      }
    }
    // For master, no protocol is fine; 2.8.7 refuses, and so does this client.
    let refuses = session.name.hasSuffix("http-no-protocol")
    if session.outcome == nil, !refuses {
      let connection = try result.get()
      try expect(offered.contains(try #require(connection.chosenProtocol)))
      connection.transport.close(.normal)
    } else {
      let failure = try #require(result.failure)
      let code = refuses ? 403 : try #require(session.outcome).code
      expect(failure.code, equals: code)
      expect(!failure.isTransient)
      let isClose = code >= 1000 || session.name.hasSuffix("closed-without-answer")
      expect(failure.domain, equals: (isClose ? .webSocket : .http))
    }
    for (number, authorization) in authorizations where session.connections[number]?.request.isEmpty == false
    {
      expect(server.headers(number - 1)["authorization"], equals: authorization)
    }
  }
}
