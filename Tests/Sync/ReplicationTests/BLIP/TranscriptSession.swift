// The recorded sessions of Couchbase Lite clients and passive peers: $TOUCHSTONE_DATA/sync-transcripts. Its README.md gives
// the format.

import Fleece
import Foundation
import TestSupport

@testable import BLIP

/// Where the recorded sessions are; nil if the variable isn't set.
let transcriptFolder: String? = environmentVariable("TOUCHSTONE_DATA").map { $0 + "/sync-transcripts" }

/// A message as it was recorded.
struct RecordedMessage: Sendable {
  /// Its place in the recording.
  let place: Int
  let connection: Int
  let isFromClient: Bool
  let number: Int
  let kind: BLIPMessage.Kind
  /// What a request asks for, and what a reply answers.
  let profile: String
  var properties: [String: String]
  /// The body if it is JSON.
  var json: JSONValue?
  /// The body if it is text or other bytes.
  var bytes: [UInt8]?
  let bodyCount: Int
  let isCompressed: Bool
  let isUrgent: Bool
  let isNoReply: Bool

  var isRequest: Bool { kind == .request }
  /// The items of a list of changes or of its answer.
  var items: [JSONValue] { json?.array ?? [] }
  /// The document and the revision of `rev` and `norev`.
  var key: String { "\(properties["id"] ?? "") \(properties["rev"] ?? "")" }

  /// The body's bytes, as far as they are recorded.
  var body: [UInt8] {
    if let bytes { return bytes }
    if bodyCount == 0 { return [] }
    return (try? json?.jsonText()) ?? []
  }
}

/// What happened in a session, in order.
enum RecordedEvent: Sendable {
  case message(RecordedMessage)
  /// What the test did: `cmd`, `who`, and more. `pause` is the time in seconds since the message before.
  case action(place: Int, JSONValue, pause: Double)
  /// One side closed the WebSocket, or the connection ended without that (nil).
  case close(place: Int, connection: Int, isFromClient: Bool, code: Int?)

  var place: Int {
    switch self {
    case .message(let message): message.place
    case .action(let place, _, _), .close(let place, _, _, _): place
    }
  }
}

/// A recorded session.
struct TranscriptSession: Sendable {
  /// `group/name`.
  let name: String
  let header: JSONValue
  private(set) var events: [RecordedEvent] = []
  let state: TranscriptState
  /// The protocol that the server has agreed on.
  private(set) var subprotocol: String?
  /// The bytes of the frames that carried messages and ACKs.
  private(set) var clientBytes = 0
  private(set) var serverBytes = 0

  var group: String { name.split(separator: "/").first.map(String.init) ?? "" }
  var messages: [RecordedMessage] {
    events.compactMap { if case .message(let message) = $0 { message } else { nil } }
  }
  var actions: [JSONValue] {
    events.compactMap { if case .action(_, let action, _) = $0 { action } else { nil } }
  }
  /// The first action: the options of the client.
  var start: JSONValue { actions.first { $0["cmd"].string == "start" } ?? .null }
  var connections: [Int] { Set(messages.map(\.connection)).sorted() }
  /// Whether the client named collections.
  var namesCollections: Bool { messages.contains { $0.profile == "getCollections" } }
  /// Whether lists or bodies are missing that a replay needs.
  var isIncomplete: Bool { messages.contains { $0.json == .some("unknown") } }

  /// All recorded sessions, in the order of their names.
  static let all: [TranscriptSession] = {
    guard let transcriptFolder else { return [] }
    let only = environmentVariable("TOUCHSTONE_TRANSCRIPT")
    var sessions: [TranscriptSession] = []
    for group in (try? FileManager.default.contentsOfDirectory(atPath: transcriptFolder).sorted()) ?? [] {
      let bodies = (try? value(at: "\(group)/bodies.json")) ?? [:]
      let names = (try? FileManager.default.contentsOfDirectory(atPath: "\(transcriptFolder)/\(group)")) ?? []
      for name in names.sorted() where name != "bodies.json" {
        if let only, !"\(group)/\(name)".hasPrefix(only) { continue }
        guard let session = try? TranscriptSession("\(group)/\(name)", bodies) else { continue }
        sessions.append(session)
      }
    }
    return sessions
  }()

  static func value(at path: String) throws -> JSONValue {
    let data = FileManager.default.contents(atPath: (transcriptFolder ?? "") + "/" + path) ?? Data()
    return try data.withUnsafeBytes { try JSONValue(json: $0) }
  }

  init(_ name: String, _ bodies: JSONValue) throws {
    self.name = name
    let path = (transcriptFolder ?? "") + "/\(name)/transcript.jsonl"
    guard let data = FileManager.default.contents(atPath: path) else { throw CocoaError(.fileNoSuchFile) }
    let lines = try data.split(separator: UInt8(ascii: "\n")).map { line in
      try line.withUnsafeBytes { try JSONValue(json: $0) }
    }
    header = lines.first ?? .null
    state = TranscriptState(try Self.value(at: "\(name)/state.json"), bodies)
    let namesCollections = lines.contains { line in
      (line.array?[8] ?? line["blip"]["message"])["properties"]["Profile"].string == "getCollections"
    }
    var lastMessage = 0.0
    for (place, line) in lines.enumerated() {
      if let columns = line.array {
        if columns[1].string == "C>S" {
          clientBytes += Int(columns[2].int ?? 0)
        } else {
          serverBytes += Int(columns[2].int ?? 0)
        }
        lastMessage = columns[0].double ?? lastMessage
        if let message = message(columns, place, namesCollections) { events.append(.message(message)) }
        continue
      }
      switch line["kind"].string {
      case "action":
        events.append(.action(place: place, line, pause: (line["t"].double ?? 0) - lastMessage))
      case "http":
        for header in line["headers"].array ?? [] where line["dir"].string == "S>C" {
          if header[0].string == "Sec-WebSocket-Protocol" { subprotocol = header[1].string }
        }
      case "tcp" where ["EOF", "error"].contains(line["event"].string ?? ""):
        events.append(
          .close(
            place: place, connection: Int(line["conn"].int ?? 1), isFromClient: line["dir"].string == "C>S",
            code: nil))
      case "ws" where line["op"].string == "close":
        let code = line["hex"].string.flatMap { Int($0.prefix(4), radix: 16) }
        events.append(
          .close(
            place: place, connection: Int(line["conn"].int ?? 1), isFromClient: line["dir"].string == "C>S",
            code: code ?? 1000))
      case "ws":
        guard let blip = line["blip"].object.map({ JSONValue.object($0) }) else { continue }
        if line["dir"].string == "C>S" {
          clientBytes += Int(line["len"].int ?? 0)
        } else {
          serverBytes += Int(line["len"].int ?? 0)
        }
        lastMessage = line["t"].double ?? lastMessage
        if let message = message(line, blip, place) { events.append(.message(message)) }
      default: break
      }
    }
    // What the client was told, if that was changed on the way.
    if let forced = header["forced_answer"].string { subprotocol = forced }
    try addLongBodies(lines)
  }

  private static func kind(_ type: String?) -> BLIPMessage.Kind? {
    switch type {
    case "MSG": .request
    case "RPY": .reply
    case "ERR": .error
    default: nil
    }
  }

  private static func texts(_ value: JSONValue) -> [String: String] {
    Dictionary(
      uniqueKeysWithValues: (value.object ?? [:]).compactMap { name, value in value.string.map { (name, $0) }
      })
  }

  private func message(_ line: JSONValue, _ blip: JSONValue, _ place: Int) -> RecordedMessage? {
    let message = blip["message"]
    guard message.object != nil, let kind = Self.kind(blip["type"].string) else { return nil }
    let properties = Self.texts(message["properties"])
    let flags = FrameFlags(rawValue: UInt8(blip["flags"].int ?? 0))
    var bytes: [UInt8]?
    if let text = message["body_text"].string { bytes = Array(text.utf8) }
    if let digits = message["body_hex"].string { bytes = hex(digits) }
    return RecordedMessage(
      place: place, connection: Int(line["conn"].int ?? 1), isFromClient: line["dir"].string == "C>S",
      number: Int(blip["no"].int ?? 0), kind: kind,
      profile: properties["Profile"] ?? blip["reply_to"].string ?? "", properties: properties,
      json: message.object?["body_json"], bytes: bytes, bodyCount: Int(message["body_len"].int ?? 0),
      isCompressed: flags.contains(.compressed), isUrgent: flags.contains(.urgent),
      isNoReply: flags.contains(.noReply))
  }

  /// A message of a recording without bytes: [t, dir, length, number, type, flags, payload, inflated, extra].
  private func message(_ columns: [JSONValue], _ place: Int, _ namesCollections: Bool) -> RecordedMessage? {
    let flags = FrameFlags(rawValue: UInt8(columns[5].int ?? 0))
    guard let kind = Self.kind(columns[4].string), !flags.contains(.moreComing) else { return nil }
    let extra = columns[8]
    let isFromClient = columns[1].string == "C>S"
    var properties = Self.texts(extra["properties"])
    var json = extra.object?["body_json"]
    if json == .null { json = nil }
    var profile = properties["Profile"] ?? extra["reply_to"].string ?? "rev"
    var bodyCount = Int(extra["body_len"].int ?? 0)
    if let items = extra["items"].int {
      json = items == 0 ? [] : items == 1 ? .array([extra["first_item"]]) : "unknown"
    }
    if let rev = extra.array ?? extra["rev"].array {
      // Only the document and the sequence are recorded. The state has the rest.
      let id = rev[0].string ?? ""
      let document = state.document(id)
      properties = [
        "Profile": "rev", "id": id, "rev": document?.revision ?? "",
        "sequence": rev[1].string ?? "\(rev[1].int ?? 0)",
      ]
      if isFromClient { properties["noconflicts"] = "1" }
      if namesCollections { properties["collection"] = "0" }
      json = document.flatMap { state.body(id, $0.revision) } ?? "unknown"
      bodyCount = Int((rev.count > 2 ? rev[2].int : extra["body_len"].int) ?? 0)
      profile = "rev"
    }
    return RecordedMessage(
      place: place, connection: 1, isFromClient: isFromClient, number: Int(columns[3].int ?? 0), kind: kind,
      profile: profile, properties: properties, json: json, bytes: nil, bodyCount: bodyCount,
      isCompressed: flags.contains(.compressed), isUrgent: flags.contains(.urgent),
      isNoReply: flags.contains(.noReply))
  }

  /// Long bodies are recorded as frames only.
  private mutating func addLongBodies(_ lines: [JSONValue]) throws {
    let isLong = messages.contains { $0.json == nil && $0.bytes == nil && $0.bodyCount > 0 }
    guard isLong, lines.contains(where: { $0["hex"].string != nil }) else { return }
    var bodies: [Int: [UInt8]] = [:]
    for direction in ["C>S", "S>C"] {
      let session = BLIPSession()
      for request in 1...2_000 { session.awaiting[UInt64(request)] = try OutgoingMessage(BLIPRequest("x")) }
      for (place, line) in lines.enumerated() where line["dir"].string == direction {
        guard line["blip"].object != nil, let digits = line["hex"].string else { continue }
        if case .message(let message, let counted, _) = try session.receive(hex(digits)) {
          bodies[place] = Array(message.body)
          if message.kind == .request { session.release(countedBytes: counted) }
        }
        while !session.acks.isEmpty { _ = try session.nextFrame() }
      }
    }
    events = events.map { event in
      guard case .message(var message) = event, message.json == nil, message.bytes == nil,
        let body = bodies[message.place]
      else { return event }
      message.bytes = body
      if message.profile == "rev" { message.json = try? body.withUnsafeBytes { try JSONValue(json: $0) } }
      return .message(message)
    }
  }
}
