// The recorded exchanges of CouchDB 3.5, PouchDB and CouchDB's replicator: $TOUCHSTONE_DATA/http-transcripts. Its README.md gives
// the format.

import Fleece
import Foundation
import TestSupport

/// Where the recordings are; nil if the variable isn't set.
let recordingFolder: String? = environmentVariable("TOUCHSTONE_DATA").map { $0 + "/http-transcripts" }

/// A request and its answer.
struct RecordedExchange: Sendable {
  let number: Int
  /// When the request began and when the answer ended, in seconds since the start of the session.
  let start: Double
  let end: Double
  let client: String
  let note: String
  let method: String
  /// The path with its escapes, and the query behind the question mark.
  let path: String
  let query: String
  let headers: [(name: String, value: String)]
  let body: [UInt8]
  let status: Int
  let answerHeaders: [(name: String, value: String)]
  let answerBody: [UInt8]
  /// The chunks of a feed's body, with their times.
  let pieces: [(time: Double, text: String)]?
  /// Why the exchange ended, if not in the usual way.
  let ended: String?
  /// The recorder answered, not CouchDB.
  let isAnsweredByProxy: Bool

  var target: String { query.isEmpty ? path : "\(path)?\(query)" }
  /// The segments of the path, not decoded.
  var segments: [String] { path.split(separator: "/").map(String.init) }
  var isFeed: Bool { pieces != nil && status == 200 }
  func header(_ name: String) -> String? { Self.first(name, headers) }
  func answerHeader(_ name: String) -> String? { Self.first(name, answerHeaders) }

  private static func first(_ name: String, _ headers: [(name: String, value: String)]) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}

/// A write beside the recorded client, on a connection that wasn't recorded.
struct RecordedWrite: Sendable {
  let time: Double
  /// What was written, if it is given as a request.
  let request: (method: String, target: String, body: JSONValue)?
  let status: Int
  let answer: JSONValue
  /// What was written, in words.
  let text: String
}

/// What happened in a session, in the order of the starts.
enum RecordedEvent: Sendable {
  case exchange(RecordedExchange)
  case write(RecordedWrite)
}

/// A recorded session.
struct Recording: Sendable {
  /// The name of its file, without the extension.
  let name: String
  private(set) var events: [RecordedEvent] = []

  var exchanges: [RecordedExchange] {
    events.compactMap { if case .exchange(let exchange) = $0 { exchange } else { nil } }
  }

  /// The names of all recordings, sorted.
  static let names: [String] =
    recordingFolder.map { folder in
      let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      return files.filter { $0.hasSuffix(".jsonl") }.map { String($0.dropLast(6)) }.sorted()
    } ?? []

  init(_ name: String) throws {
    self.name = name
    guard let recordingFolder else { throw RecordingError(description: "TOUCHSTONE_DATA is not set") }
    let text = try Data(contentsOf: URL(fileURLWithPath: "\(recordingFolder)/\(name).jsonl"))
    for line in text.split(separator: UInt8(ascii: "\n")) {
      let value = try line.withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) }
      switch value["type"].string {
      case "http": events.append(.exchange(try RecordedExchange(value)))
      case "write": events.append(.write(RecordedWrite(value)))
      default: break
      }
    }
  }
}

struct RecordingError: Error, CustomStringConvertible { let description: String }

extension RecordedExchange {
  fileprivate init(_ value: JSONValue) throws {
    guard let number = value["n"].int, let method = value["req"]["method"].string,
      let path = value["req"]["path"].string, let status = value["res"]["status"].int
    else { throw RecordingError(description: "not an exchange: \(value.description.prefix(200))") }
    self.number = Int(number)
    self.method = method
    self.path = path
    self.status = Int(status)
    start = value["t"].double ?? 0
    end = value["t_end"].double ?? value["t_head"].double ?? value["t"].double ?? 0
    client = value["client"].string ?? ""
    note = value["note"].string ?? ""
    query = value["req"]["query"].string ?? ""
    headers = Self.headers(value["req"])
    body = try Self.body(value["req"])
    answerHeaders = Self.headers(value["res"])
    pieces = value["res"]["pieces"].array?.map { ($0[0].double ?? 0, $0[1].string ?? "") }
    answerBody = try pieces.map { Array($0.map(\.text).joined().utf8) } ?? Self.body(value["res"])
    ended = value["ended"].string
    isAnsweredByProxy = value["answered_by_proxy"].bool == true
  }

  private static func headers(_ value: JSONValue) -> [(name: String, value: String)] {
    (value["headers"].array ?? []).map { ($0[0].string ?? "", $0[1].string ?? "") }
  }

  private static func body(_ value: JSONValue) throws -> [UInt8] {
    if let text = value["body"].string { return Array(text.utf8) }
    guard let text = value["body_base64"].string else { return [] }
    guard let data = Data(base64Encoded: text) else { throw RecordingError(description: "not base64") }
    return [UInt8](data)
  }
}

extension RecordedWrite {
  fileprivate init(_ value: JSONValue) {
    time = value["t"].double ?? 0
    let words = (value["request"].string ?? "").split(separator: " ", maxSplits: 1).map(String.init)
    request = words.count == 2 ? (words[0], words[1], value["body"]) : nil
    status = Int(value["status"].int ?? 0)
    answer = value["answer"]
    text = value["text"].string ?? ""
  }
}
