// What the recorded server answers, and the comparison at the end.

import BLIP
import Documents
import Fleece
import Foundation
import TestSupport
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

extension RecordedServer {
  func properties(_ message: BLIPMessage) -> [String: String] {
    Dictionary(message.properties.entries.map { ($0.name, $0.value) }) { first, _ in first }
  }

  /// Answers with a recorded error. Returns false if the recorded answer isn't one.
  func refuse(_ request: BLIPIncomingRequest, _ recorded: RecordedMessage?) -> Bool {
    guard let recorded, recorded.kind == .error else { return false }
    request.reply(
      BLIPErrorReply(
        domain: recorded.properties["Error-Domain"] ?? "BLIP",
        code: recorded.properties["Error-Code"].flatMap { Int($0) } ?? 0,
        text: String(decoding: recorded.body, as: UTF8.self)))
    return true
  }

  /// The checkpoint that the recorded server has at first.
  private func takeStored(_ json: JSONValue, _ revision: String?) {
    guard stored == nil, let revision, let number = Int(revision.dropLast(3)) else { return }
    stored = (json, number)
  }

  func getCollections(_ request: BLIPIncomingRequest) {
    let recorded = recorded("getCollections")
    if let recorded {
      notes.count()
      let body = try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) }
      notes.compare("getCollections", "body", body, recorded.json)
      if refuse(request, replies[recorded.place]) { return }
      var first = replies[recorded.place]?.items.first ?? [:]
      let revision = first.remove("rev")?.string
      if link?.number == session.connections.first { takeStored(first, revision) }
    } else if let plain = self.recorded("getCheckpoint"), let reply = replies[plain.place],
      reply.kind == .reply
    {
      takeStored(reply.json ?? .null, reply.properties["rev"])
    }
    var item = stored?.json ?? [:]
    if let stored { item["rev"] = .string("\(stored.revision)-cc") }
    request.reply(BLIPReply(body: .bytes((try? JSONValue.array([item]).jsonText()) ?? [])))
  }

  func getCheckpoint(_ request: BLIPIncomingRequest) {
    if let recorded = recorded("getCheckpoint") {
      notes.count()
      notes.compare(
        "getCheckpoint", "properties", properties(request.message), recorded.properties, without: [])
      if let reply = replies[recorded.place], reply.kind == .reply {
        takeStored(reply.json ?? .null, reply.properties["rev"])
      }
    }
    guard let stored else { return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404)) }
    request.reply(
      BLIPReply(["rev": "\(stored.revision)-cc"], body: .bytes((try? stored.json.jsonText()) ?? [])))
  }

  func setCheckpoint(_ request: BLIPIncomingRequest) {
    notes.count()
    let base = request.message.properties["rev"] ?? ""
    guard base == stored.map({ "\($0.revision)-cc" }) ?? "" else {
      notes.note("setCheckpoint", "it is based on \(base)")
      return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 409))
    }
    if let recorded = recorded("setCheckpoint") {
      notes.compare(
        "setCheckpoint", "properties", properties(request.message), recorded.properties, without: ["rev"])
    }
    let json = (try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) }) ?? .null
    stored = (json, (stored?.revision ?? 0) + 1)
    request.reply(BLIPReply(["rev": "\(stored?.revision ?? 0)-cc"]))
  }

  func subChanges(_ request: BLIPIncomingRequest) {
    link?.hasPulled = true
    guard let recorded = recorded("subChanges") else {
      notes.note("unrecorded", "subChanges")
      request.reply()
      var end = BLIPRequest("changes", [:], body: .bytes(Array("[]".utf8)))
      end.isNoReply = true
      _ = link?.connection.send(end) { _ in }
      return
    }
    notes.count()
    var ignored: Set<String> = []
    // Older clients don't say these.
    if !session.namesCollections { ignored = ["sendReplacementRevs", "versioning", "revocations"] }
    notes.compare(
      "subChanges", "properties", properties(request.message), recorded.properties, without: ignored)
    let body = try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) }
    notes.compare("subChanges", "body", body, recorded.json)
    if refuse(request, replies[recorded.place]) { return }
    request.reply()
  }

  /// Answers a list of changes that the client wants to push.
  func proposed(_ request: BLIPIncomingRequest) {
    let profile = request.message.profile ?? ""
    let items = (try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) })?.array ?? []
    guard !items.isEmpty else { return _ = request.reply() }
    notes.count()
    let first = recorded(profile)
    if let first {
      var ignored: Set<String> = []
      // Older clients don't say it.
      if !session.namesCollections { ignored = ["conflictIncludesRev"] }
      notes.compare(profile, "properties", properties(request.message), first.properties, without: ignored)
    }
    var answers: [JSONValue] = []
    for item in items {
      let key = Self.proposal(item, profile)
      proposed.insert(key)
      if statuses[key] == nil { notes.note("proposed", key) }
      // What comes from the server is known there.
      let name = "\(item[0].string ?? "") \(item[1].string ?? "")"
      answers.append(statuses[key] ?? (sentByServer[name] == nil ? 0 : 304))
    }
    if let first, refuse(request, replies[first.place]) { return }
    var properties = first.flatMap { replies[$0.place]?.properties } ?? ["maxHistory": "20", "blobs": "true"]
    if link?.hasAnsweredList == true { properties["deltas"] = nil }
    link?.hasAnsweredList = true
    var list = BLIPProperties()
    for name in ["maxHistory", "blobs", "deltas", "sendReplacementRevs"] {
      if let value = properties[name] { list.append(name, value) }
    }
    var reply = BLIPReply(list, body: .bytes((try? JSONValue.array(trimmed(answers)).jsonText()) ?? []))
    reply.isCompressed = true
    request.reply(reply)
  }

  func rev(_ request: BLIPIncomingRequest) {
    let properties = properties(request.message)
    let key = "\(properties["id"] ?? "") \(properties["rev"] ?? "")"
    clientRevisions.insert(key)
    guard let recorded = sentByClient[key] else {
      notes.note("rev", key)
      return _ = request.reply()
    }
    notes.count()
    notes.compare(
      "rev", key, properties, recorded.properties, without: ["history", "deltaSrc"])
    notes.compare("rev.history", key, history(properties), history(recorded.properties))
    compareBodies(request.message, properties, recorded, key)
    let reply = replies[recorded.place]
    let attachments = session.messages.filter {
      $0.profile == "getAttachment" && $0.isRequest && !$0.isFromClient && $0.place < (reply?.place ?? 0)
    }.count
    heldReplies.append((request, attachments, reply))
    answerHeld()
  }

  func answerHeld() {
    heldReplies.removeAll { held in
      guard held.attachments <= attachmentsAnswered else { return false }
      if !refuse(held.request, held.reply) { held.request.reply() }
      return true
    }
  }

  /// Compares the bodies that both revisions have after deltas are applied.
  private func compareBodies(
    _ message: BLIPMessage, _ properties: [String: String], _ recorded: RecordedMessage, _ key: String
  ) {
    do {
      let id = properties["id"] ?? ""
      func whole(_ body: JSONValue, _ source: String?) throws -> JSONValue {
        guard let source else { return body }
        guard let old = session.state.body(id, source) else { throw CocoaError(.coderValueNotFound) }
        return try JSONDelta.apply(body, to: old)
      }
      let own = try message.body.withUnsafeBytes { try JSONValue(json: $0) }
      let theirs = recorded.json ?? [:]
      notes.compare(
        "rev.body", key, try whole(own, properties["deltaSrc"]),
        try whole(theirs, recorded.properties["deltaSrc"]))
      if properties["deltaSrc"] != nil || recorded.properties["deltaSrc"] != nil {
        notes.compare("delta", key, properties["deltaSrc"], recorded.properties["deltaSrc"])
        notes.compare("delta.form", key, own, theirs)
      }
    } catch { notes.note("rev.body", "\(key): \(error)") }
  }

  func norev(_ request: BLIPIncomingRequest) {
    notes.count()
    let properties = properties(request.message)
    if sentByClient["\(properties["id"] ?? "") \(properties["rev"] ?? "")"]?.profile != "norev" {
      notes.note("norev", "\(properties)")
    }
    request.reply()
  }

  func getAttachment(_ request: BLIPIncomingRequest) {
    notes.count()
    let properties = properties(request.message)
    let recorded = session.messages.first {
      $0.profile == "getAttachment" && $0.isRequest && $0.isFromClient
        && $0.properties["digest"] == properties["digest"]
    }
    guard let recorded, let bytes = RecordedBlobs.all[properties["digest"] ?? ""] else {
      notes.note("getAttachment", "\(properties)")
      return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404))
    }
    notes.compare(
      "getAttachment", "properties", properties, recorded.properties, without: ["docID"])
    var reply = BLIPReply(body: .bytes(bytes))
    reply.isCompressed = properties["compress"] != nil
    request.reply(reply)
  }

  // MARK: After the run

  /// Compares what the client has done with all that was recorded.
  func finish(_ status: ReplicatorStatus?) throws {
    guard let status else { return notes.note("hang", "the client doesn't stop: \(waiting)") }
    // What the test did after the client had stopped.
    work.sync { self.advance() }
    let missing = Set(statuses.keys).subtracting(proposed)
    for key in missing.sorted() { notes.note("not-proposed", key) }
    for (key, message) in sentByClient where message.profile == "rev" && !clientRevisions.contains(key) {
      notes.note("not-sent", key)
    }
    if case .some(let step) = steps.first {
      if case .send(let message) = step, message.items.isEmpty {
      } else {
        notes.note("steps", "\(steps.count) steps weren't reached: \(waiting)")
      }
    }
    compare(status)
    let state = session.state
    try client.compare(with: state.endClient, state, marks: true) { notes.note("end.\($0)", $1) }
    try client.compareCheckpoints(state.endClient.value["checkpoints"], isPeer: false) {
      notes.note("end.\($0)", $1)
    }
    // What the server has stored is what was recorded last.
    let last = session.messages.last { $0.profile == "setCheckpoint" && $0.isRequest }?.json
    if let last {
      let isFurther = try stored?.json["local"].uint == client.database.lastSequence
      notes.compare(
        isFurther ? "further" : "checkpoint.local", "at the end", stored?.json["local"] ?? .null,
        last["local"])
      notes.compare("checkpoint.remote", "at the end", stored?.json["remote"] ?? .null, last["remote"])
    }
  }

  private func compare(_ status: ReplicatorStatus) {
    let result = session.state.result
    // The command had no status.
    if result.isNull { return }
    notes.compare("activity", "at the end", "\(status.activity)", result["level"].string)
    let error = result["error"]
    let code = error["code"].int.map { Int($0) }
    let domain: ReplicationError.Domain? =
      switch error["domain"].int {
      case 1: .liteCore
      case 2: .posix
      case 6: (code ?? 0) < 1_000 ? .http : .webSocket
      default: nil
      }
    notes.compare("error", "code", status.error?.code, code)
    notes.compare("error", "domain", status.error?.domain, domain)
  }
}
