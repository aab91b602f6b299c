// Plays the recorded client to the passive side of this library.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// Sends the recorded requests in the recorded order. A request that follows a received message in the recording waits
/// for the counterpart of that message. The server's requests are answered with what was recorded.
final class RecordedClient: @unchecked Sendable {
  private enum Step {
    case send(RecordedMessage)
    case action(JSONValue, place: Int)
  }

  private let session: TranscriptSession
  private let number: Int
  private let notes: ReplayNotes
  private let server: ReplayDatabase
  private let connection: BLIPConnection
  private let responder: BLIPResponder
  private let serverEnd: CountingTransport
  private let work = Workers()
  private let ended = CountingSemaphore()
  private let shown = Lock("")

  // Used on the thread `work` only.
  private var steps: [Step] = []
  /// Received messages that others wait for: their names in `names(of:)`.
  private var received: Set<String> = []
  private var held: [(request: BLIPIncomingRequest, items: [JSONValue])] = []
  private var hasAnsweredList = false
  private var offered: Set<String> = []
  private var openRequests = 0
  private var hasEnded = false
  private var caughtUp = 0

  // What is recorded in this connection.
  private let messages: [RecordedMessage]
  private var replies: [Int: RecordedMessage] = [:]
  private var requests: [String: RecordedMessage] = [:]
  private var answers: [String: (reply: RecordedMessage, item: JSONValue)] = [:]
  private var sentByServer: [String: RecordedMessage] = [:]
  private var recordedOffers: Set<String> = []
  private let pushed: Set<String>

  init(_ session: TranscriptSession, connection number: Int, _ server: ReplayDatabase, _ notes: ReplayNotes) {
    self.session = session
    self.number = number
    self.server = server
    self.notes = notes
    let (client, end) = PipeTransport.pair()
    let passive = CountingTransport(end)
    serverEnd = passive
    connection = BLIPConnection(client, name: "recorded client")
    var options = PassiveResponder.Options()
    options.acceptsRevisions = !session.name.hasSuffix("/server-pull-only")
    options.givesRevisions = !session.name.hasSuffix("/server-push-only")
    options.refusesConflicts = ["/server-no-conflicts", "/push-outgoing-conflicts-refused"].contains {
      session.name.hasSuffix($0)
    }
    responder = BLIPResponder(BLIPConnection(passive, name: "server"), server.database, options)
    messages = session.messages.filter { $0.connection == number }
    pushed = Set(messages.filter { $0.isFromClient && $0.isRequest && $0.profile == "rev" }.map(\.key))
    index()
  }

  var serverBytes: UInt64 { serverEnd.sentBytes }

  // MARK: The recording

  private func index() {
    // A revision may have been sent in another connection.
    for message in session.messages where message.isRequest && !message.isFromClient {
      guard message.profile == "rev" || message.profile == "norev" else { continue }
      if message.connection == number || sentByServer[message.key] == nil {
        sentByServer[message.key] = message
      }
    }
    // Actions belong to the connection whose messages came before them, and after a kill to the next one.
    var current = session.connections.first ?? 1
    for event in session.events {
      switch event {
      case .action(let place, let action, _):
        if current == number, action["who"].string == "server" { steps.append(.action(action, place: place)) }
        if action["cmd"].string?.hasPrefix("killed") == true { current += 1 }
      case .close: break
      case .message(let message):
        current = message.connection
        guard current == number else { continue }
        let name = "\(message.isRequest == message.isFromClient) \(message.number)"
        if message.isRequest {
          requests[name] = message
          if message.isFromClient { steps.append(.send(message)) }
        } else if let request = requests[name] {
          replies[request.place] = message
          if message.isFromClient, message.profile == "changes" {
            for (place, item) in request.items.enumerated() {
              let wanted =
                place < message.items.count && !message.items[place].isNull ? message.items[place] : 0
              answers["\(item[1].string ?? "") \(item[2].string ?? "")"] = (message, wanted)
            }
          }
        }
        guard message.isRequest, !message.isFromClient else { continue }
        if message.profile == "changes" { recordedOffers.formUnion(message.items.map(Self.offer)) }
      }
    }
  }

  /// A change that is offered, without the size of its body.
  private static func offer(_ item: JSONValue) -> String {
    "\(item[0]) \(item[1].string ?? "") \(item[2].string ?? "") \(item[3].bool == true ? 1 : item[3].int ?? 0)"
  }

  /// What has to be received before a step that comes after this message.
  private func names(of message: RecordedMessage) -> [String] {
    if !message.isRequest { return ["reply \(message.number)"] }
    // Edits that follow each other at once are offered together: only the last one has to come.
    func isPassedOver(_ id: String, _ revision: String) -> Bool {
      id.contains("burst") && session.state.endServer.current[id] != revision
    }
    switch message.profile {
    case "changes":
      return message.items.compactMap { item in
        let (id, revision) = (item[1].string ?? "", item[2].string ?? "")
        return isPassedOver(id, revision) ? nil : "changes \(id) \(revision)"
      }
    case "rev", "norev":
      let (id, sent) = (message.properties["id"] ?? "", message.properties["rev"] ?? "")
      let asked = message.properties["replacedRev"] ?? sent
      return isPassedOver(id, sent) ? [] : ["rev \(id) \(asked)"]
    case "getAttachment": return ["blob \(message.properties["digest"] ?? "")"]
    default: return []
    }
  }

  private func isReady(_ place: Int) -> Bool {
    for message in messages where message.place < place && !message.isFromClient {
      for name in names(of: message) where !received.contains(name) {
        shown.withLock { $0 = "\(name) before \(place)" }
        return false
      }
    }
    return true
  }

  // MARK: The run

  /// Plays the connection to its end. Returns false if it doesn't come.
  func run() -> Bool {
    let handlers: [String: @Sendable (RecordedClient, BLIPIncomingRequest) -> Void] = [
      "changes": { $0.changes($1) }, "rev": { $0.rev($1) }, "norev": { $0.norev($1) },
      "getAttachment": { $0.getAttachment($1) },
    ]
    for (profile, handler) in handlers {
      connection.onRequest(profile) { [weak self] request in
        guard let self else { return }
        work.enqueue { [self] in
          handler(self, request)
          advance()
        }
      }
    }
    connection.onClose { [weak self] _ in self?.work.enqueue { [weak self] in self?.end() } }
    responder.start()
    connection.start()
    work.enqueue { [self] in advance() }
    let isDone = ended.wait(seconds: replayLimit)
    if !isDone { notes.note("hang", "it waits for \(shown.withLock { $0 })") }
    connection.close()
    work.sync {}
    let (offered, recorded, pushed) = work.sync { (self.offered, self.recordedOffers, self.pushed) }
    for offer in recorded.subtracting(offered).sorted() { notes.note("not-offered", offer) }
    for offer in offered.subtracting(recorded).sorted() {
      let parts = offer.split(separator: " ")
      let isEcho = parts.count == 4 && pushed.contains("\(parts[1]) \(parts[2])")
      notes.note(isEcho ? "echo" : "offered", offer)
    }
    return isDone
  }

  private func end() {
    guard !hasEnded else { return }
    hasEnded = true
    ended.signal()
  }

  private func advance() {
    guard !hasEnded else { return }
    answerHeld()
    while let step = steps.first {
      switch step {
      case .send(let message):
        guard isReady(message.place) else { return }
        steps.removeFirst()
        send(message)
      case .action(let action, let place):
        guard isReady(place), openRequests == 0 else { return }
        steps.removeFirst()
        act(action)
        if hasEnded { return }
        answerHeld()
      }
    }
    // Everything that was recorded has come.
    if openRequests == 0, held.isEmpty, isReady(.max), caughtUp > 0 || !expectsEnd { end() }
  }

  /// Whether the recorded server said that all changes were offered.
  private var expectsEnd: Bool {
    messages.contains { $0.profile == "changes" && $0.isRequest && !$0.isFromClient && $0.items.isEmpty }
  }

  private func act(_ action: JSONValue) {
    do {
      switch action["cmd"].string ?? "" {
      case "put": try server.apply([action], session.state.endServer)
      case "bulk": try server.apply(action["docs"].array ?? [], session.state.endServer)
      case "purge":
        // The recording of 2.8.7 says so, and did nothing.
        if session.state.endServer.current[action["id"].string ?? ""] == nil {
          try server.database.purge(action["id"].string ?? "")
        }
      case "close_connections": responder.close()
      case let command where command.hasPrefix("killed"): end()
      default: break
      }
    } catch { notes.note("edit", "\(error)") }
  }

  // MARK: Requests of the client

  private func send(_ message: RecordedMessage) {
    var properties = BLIPProperties()
    for (name, value) in message.properties where name != "Profile" { properties.append(name, value) }
    var request = BLIPRequest(message.profile, properties, body: .bytes(message.body))
    request.isCompressed = message.isCompressed
    request.isUrgent = message.isUrgent
    request.isNoReply = message.isNoReply
    if !message.isNoReply { openRequests += 1 }
    connection.send(request) { [weak self] result in
      self?.work.enqueue { [weak self] in
        guard let self else { return }
        if !message.isNoReply { openRequests -= 1 }
        received.insert("reply \(message.number)")
        if case .success(let reply) = result, !message.isNoReply { compare(reply, to: message) }
        advance()
      }
    }
  }

  private func properties(_ message: BLIPMessage) -> [String: String] {
    Dictionary(message.properties.entries.map { ($0.name, $0.value) }) { first, _ in first }
  }

  private func compare(_ reply: BLIPMessage, to request: RecordedMessage) {
    guard let recorded = replies[request.place] else { return }
    notes.count()
    let what = "\(request.profile) \(request.place)"
    guard reply.error == nil, recorded.kind == .reply else {
      return notes.compare(
        "error", what,
        reply.error.map { "\($0.domain) \($0.code) \(recorded.body.isEmpty ? "" : $0.text)" },
        recorded.kind == .error
          ? "\(recorded.properties["Error-Domain"] ?? "BLIP") \(recorded.properties["Error-Code"] ?? "") \(String(decoding: recorded.body, as: UTF8.self))"
          : nil)
    }
    notes.compare("reply", what, properties(reply), recorded.properties, without: [])
    let body = try? reply.body.withUnsafeBytes { try JSONValue(json: $0) }
    if ["proposeChanges", "changes"].contains(request.profile) {
      notes.compare("statuses", what, trimmed(body?.array ?? []), trimmed(recorded.items))
    } else {
      notes.compare("reply.body", what, body, recorded.json)
    }
  }

  // MARK: Requests of the server

  private func changes(_ request: BLIPIncomingRequest) {
    let items = (try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) })?.array ?? []
    guard !items.isEmpty else {
      caughtUp += 1
      return _ = request.reply()
    }
    notes.count()
    for item in items {
      offered.insert(Self.offer(item))
      received.insert("changes \(item[1].string ?? "") \(item[2].string ?? "")")
    }
    held.append((request, items))
  }

  /// Answers lists. The recorded client answered some of them after the server's edits.
  private func answerHeld() {
    held.removeAll { held in
      let known = held.items.compactMap { answers["\($0[1].string ?? "") \($0[2].string ?? "")"] }
      if let place = known.first?.reply.place {
        let isEarly = steps.contains { step in
          if case .action(_, let action) = step { action < place } else { false }
        }
        if isEarly { return false }
      }
      var properties = known.first?.reply.properties ?? ["maxHistory": "50", "blobs": "true"]
      properties["deltas"] = hasAnsweredList ? nil : properties["deltas"]
      hasAnsweredList = true
      var list = BLIPProperties()
      for (name, value) in properties { list.append(name, value) }
      let items = held.items.map { answers["\($0[1].string ?? "") \($0[2].string ?? "")"]?.item ?? 0 }
      var reply = BLIPReply(list, body: .bytes((try? JSONValue.array(trimmed(items)).jsonText()) ?? []))
      reply.isCompressed = true
      held.request.reply(reply)
      return true
    }
  }

  private func rev(_ request: BLIPIncomingRequest) {
    let own = properties(request.message)
    let key = "\(own["id"] ?? "") \(own["rev"] ?? "")"
    defer {
      received.insert("rev \(key)")
      if let replaced = own["replacedRev"] { received.insert("rev \(own["id"] ?? "") \(replaced)") }
    }
    guard let recorded = sentByServer[key], recorded.profile == "rev" else {
      notes.note("rev", key)
      return _ = request.reply()
    }
    notes.count()
    notes.compare("rev", key, own, recorded.properties, without: ["history", "deltaSrc"])
    notes.compare("rev.history", key, history(own), history(recorded.properties))
    compareBodies(request.message, own, recorded, key)
    if let reply = replies[recorded.place], reply.kind == .error {
      return _ = request.reply(
        BLIPErrorReply(
          domain: reply.properties["Error-Domain"] ?? "BLIP",
          code: reply.properties["Error-Code"].flatMap { Int($0) } ?? 0))
    }
    request.reply()
  }

  private func compareBodies(
    _ message: BLIPMessage, _ own: [String: String], _ recorded: RecordedMessage, _ key: String
  ) {
    do {
      func whole(_ body: JSONValue, _ source: String?) throws -> JSONValue {
        guard let source else { return body }
        guard let old = session.state.body(own["id"] ?? "", source) else {
          throw CocoaError(.coderValueNotFound)
        }
        return try JSONDelta.apply(body, to: old)
      }
      let body = try message.body.withUnsafeBytes { try JSONValue(json: $0) }
      notes.compare(
        "rev.body", key, try whole(body, own["deltaSrc"]),
        try whole(recorded.json ?? [:], recorded.properties["deltaSrc"]))
      if own["deltaSrc"] != nil || recorded.properties["deltaSrc"] != nil {
        notes.compare("delta", key, own["deltaSrc"], recorded.properties["deltaSrc"])
        notes.compare("delta.form", key, body, recorded.json ?? [:])
      }
    } catch { notes.note("rev.body", "\(key): \(error)") }
  }

  private func norev(_ request: BLIPIncomingRequest) {
    notes.count()
    let own = properties(request.message)
    let key = "\(own["id"] ?? "") \(own["rev"] ?? "")"
    received.insert("rev \(key)")
    if let recorded = sentByServer[key], recorded.profile == "norev" {
      notes.compare("norev", key, own, recorded.properties, without: [])
    } else {
      notes.note("norev", key)
    }
    request.reply()
  }

  private func getAttachment(_ request: BLIPIncomingRequest) {
    notes.count()
    let own = properties(request.message)
    let digest = own["digest"] ?? ""
    received.insert("blob \(digest)")
    let recorded = messages.first {
      $0.profile == "getAttachment" && $0.isRequest && !$0.isFromClient && $0.properties["digest"] == digest
    }
    guard let recorded, let bytes = RecordedBlobs.all[digest] else {
      notes.note("getAttachment", digest)
      return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404))
    }
    notes.compare("getAttachment", digest, own, recorded.properties, without: ["docID"])
    var reply = BLIPReply(body: .bytes(bytes))
    reply.isCompressed = own["compress"] != nil
    request.reply(reply)
  }
}
