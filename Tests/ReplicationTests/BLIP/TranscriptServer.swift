// Plays the recorded server to a client of this library.

import BLIP
import Documents
import Fleece
import Foundation
import TestSupport
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

/// Answers the client's requests with what was recorded for the same requests, offers the recorded changes, and sends
/// the recorded revisions for those that the client wants. It does what the recording's test did: edits, kills, stops.
final class RecordedServer: @unchecked Sendable {
  private enum Step {
    case send(RecordedMessage)
    case action(JSONValue, pause: Double)
  }

  /// One connection of the client.
  private final class Link: @unchecked Sendable {
    let connection: BLIPConnection
    let number: Int
    var hasPulled = false
    var hasAnsweredList = false
    /// The recorded revisions that were sent, and the number of answers.
    var sentRevisions = 0
    var answeredRevisions = 0
    var isOpen = true

    init(_ connection: BLIPConnection, _ number: Int) {
      self.connection = connection
      self.number = number
    }
  }

  private let session: TranscriptSession
  private let notes: ReplayNotes
  private let client: ReplayDatabase
  let timer = ReplayTimer()
  private let work = Workers()
  private let shown = Lock("")

  // Used on the thread `work` only.
  private var replicator: Replicator?
  private var steps: [Step] = []
  private var link: Link?
  private var unusedConnections: [Int]
  private var isDown = false
  private var status = ReplicatorStatus()
  private var stored: (json: JSONValue, revision: Int)?
  private var lastOffered: JSONValue?
  private var clientRevisions: Set<String> = []
  private var attachmentsAnswered = 0
  private var heldReplies: [(request: BLIPIncomingRequest, attachments: Int, reply: RecordedMessage?)] = []
  /// What the client has proposed: document, revision, parent.
  private var proposed: Set<String> = []
  private var clientEnds: [CountingTransport] = []

  // What is recorded.
  private var statuses: [String: JSONValue] = [:]
  private var sentByClient: [String: RecordedMessage] = [:]
  private var replies: [Int: RecordedMessage] = [:]
  private var wanted: [String: JSONValue] = [:]
  private var sentByServer: [String: [RecordedMessage]] = [:]
  /// Whether the recorded server refuses the property `collection`, as 3.2 does.
  private let refusesCollection: Bool

  init(_ session: TranscriptSession, _ client: ReplayDatabase, _ notes: ReplayNotes) {
    self.session = session
    self.client = client
    self.notes = notes
    unusedConnections = session.connections
    refusesCollection = !session.namesCollections || session.name == "negotiation/client-2026-server-3.2"
    index()
  }

  /// What it waits for, for people.
  var waiting: String { shown.withLock { $0 } }
  /// The bytes of the client's frames.
  var clientBytes: UInt64 { work.sync { self.clientEnds.map(\.sentBytes).reduce(0, +) } }

  // MARK: The recording

  private static func proposal(_ item: JSONValue, _ profile: String) -> String {
    profile == "changes"
      ? "\(item[1].string ?? "") \(item[2].string ?? "") offered"
      : "\(item[0].string ?? "") \(item[1].string ?? "") \(item[2].string ?? "")"
  }

  private func index() {
    var lists: [String: RecordedMessage] = [:]
    for event in session.events {
      switch event {
      case .action(_, let action, let pause): steps.append(.action(action, pause: pause))
      case .close: break
      case .message(let message):
        let name = "\(message.connection) \(message.isRequest == message.isFromClient) \(message.number)"
        if message.isRequest { lists[name] = message }
        if !message.isRequest, let request = lists[name] { replies[request.place] = message }
        index(message, request: lists[name])
      }
    }
  }

  private func index(_ message: RecordedMessage, request: RecordedMessage?) {
    switch (message.profile, message.isRequest, message.isFromClient) {
    case ("changes", true, false), ("getAttachment", true, false): steps.append(.send(message))
    case ("rev", true, false), ("norev", true, false):
      let revision = message.properties["replacedRev"] ?? message.properties["rev"] ?? ""
      sentByServer["\(message.properties["id"] ?? "") \(revision)", default: []].append(message)
    case ("rev", true, true), ("norev", true, true): sentByClient[message.key] = message
    case ("changes", false, true):
      for (place, item) in (request?.items ?? []).enumerated() {
        wanted["\(item[1].string ?? "") \(item[2].string ?? "")"] =
          place < message.items.count ? message.items[place] : 0
      }
    case ("proposeChanges", false, false), ("changes", false, false):
      for (place, item) in (request?.items ?? []).enumerated() {
        statuses[Self.proposal(item, message.profile)] = place < message.items.count ? message.items[place] : 0
      }
    default: break
    }
  }

  private func recorded(_ profile: String) -> RecordedMessage? {
    session.messages.first {
      $0.profile == profile && $0.isRequest && $0.isFromClient && $0.connection == link?.number
        && !($0.isNoReply && $0.items.isEmpty)
    }
  }

  // MARK: The run

  /// Runs the client until it has stopped. Returns nil if it doesn't stop. Some sessions have several runs.
  func run(_ configuration: ReplicatorConfiguration) -> ReplicatorStatus? {
    let stopped = CountingSemaphore()
    let replicator = Replicator(configuration)
    let token = replicator.observeStatus { [self] status in
      work.enqueue { [self] in
        self.status = status
        if status.activity == .stopped { stopped.signal() }
        advance()
      }
    }
    work.enqueue { [self] in
      self.replicator = replicator
      replicator.start()
    }
    let hasStopped = stopped.wait(seconds: replayLimit)
    token.cancel()
    work.sync {
      self.replicator = nil
      self.link?.connection.close()
    }
    return hasStopped ? replicator.status : nil
  }

  /// A connector whose connections are played.
  var connector: BLIPConnector {
    BLIPConnector(remoteID: ReplayDatabase.url, name: session.name) { [self] _, done in
      work.enqueue { [self] in
        guard !isDown, !unusedConnections.isEmpty else {
          return done(.failure(ReplicationError(.posix, Int(ECONNREFUSED), "Connection refused")))
        }
        let (end, server) = PipeTransport.pair()
        let client = CountingTransport(end)
        clientEnds.append(client)
        connected(server, unusedConnections.removeFirst())
        done(.success(BLIPConnector.Opened(client, subprotocol: session.subprotocol)))
      }
    }
  }

  private func connected(_ transport: PipeTransport, _ number: Int) {
    let connection = BLIPConnection(transport, name: "recorded server")
    let link = Link(connection, number)
    self.link = link
    let handlers: [String: (RecordedServer, BLIPIncomingRequest) -> Void] = [
      "getCollections": { $0.getCollections($1) }, "getCheckpoint": { $0.getCheckpoint($1) },
      "setCheckpoint": { $0.setCheckpoint($1) }, "subChanges": { $0.subChanges($1) },
      "proposeChanges": { $0.proposed($1) }, "changes": { $0.proposed($1) }, "rev": { $0.rev($1) },
      "norev": { $0.norev($1) }, "getAttachment": { $0.getAttachment($1) },
    ]
    for (profile, handler) in handlers {
      let sendable = UncheckedHandler(call: handler)
      connection.onRequest(profile) { [weak self] request in
        guard let self else { return }
        work.enqueue { [self] in
          guard self.link === link else { return }
          if profile != "getCollections", refusesCollection, request.message.properties["collection"] != nil {
            return _ = request.reply(
              BLIPErrorReply(
                domain: "HTTP", code: 400, text: "inappropriate use of the collection property."))
          }
          sendable.call(self, request)
          self.advance()
        }
      }
    }
    connection.onClose { [weak self] _ in
      self?.work.enqueue { link.isOpen = false }
    }
    connection.start()
  }

  private struct UncheckedHandler: @unchecked Sendable {
    let call: (RecordedServer, BLIPIncomingRequest) -> Void
  }

  // MARK: Steps

  /// Does the next steps, as far as their time has come.
  private func advance() {
    answerHeld()
    if status.activity == .offline, !isDown, !unusedConnections.isEmpty { timer.advance(by: 1_000) }
    while let step = steps.first {
      switch step {
      case .send(let message):
        guard let link, link.isOpen || link.number > message.connection else { return wait("a connection") }
        if link.number < message.connection { return wait("connection \(message.connection)") }
        steps.removeFirst()
        if link.number > message.connection { continue }
        guard isReady(for: message, link) else {
          // What the client would have to push for it, it doesn't push.
          if message.profile == "changes", link.hasPulled, status.activity == .idle, isSettled {
            notes.note("not-echoed", "\(message.items)")
            continue
          }
          steps.insert(step, at: 0)
          return wait("the time to send \(message.profile) \(message.place)")
        }
        send(message, link)
      case .action(let action, let pause):
        guard isReady(for: action, pause) else {
          return wait("the time for \(action)")
        }
        steps.removeFirst()
        act(action)
      }
    }
    wait("the end")
  }

  private func wait(_ what: String) {
    shown.withLock { $0 = what + "; \(status.activity), checkpoint \(stored?.json ?? .null)" }
  }

  private func isReady(for message: RecordedMessage, _ link: Link) -> Bool {
    if message.profile == "getAttachment" {
      // The server asks for it when it has the revision.
      return session.messages.contains {
        $0.profile == "rev" && $0.isRequest && $0.isFromClient && clientRevisions.contains($0.key)
          && String(describing: $0.json).contains(message.properties["digest"] ?? "-")
      }
    }
    guard link.hasPulled else { return false }
    // What the client has pushed itself.
    return message.items.allSatisfy { item in
      let key = "\(item[1].string ?? "") \(item[2].string ?? "")"
      guard let pushed = sentByClient[key], pushed.place < message.place else { return true }
      return clientRevisions.contains(key)
    }
  }

  /// Whether everything is replicated and saved.
  private var isSettled: Bool {
    guard let last = try? client.database.replicating({ try $0.lastSequence }) else { return false }
    guard (stored?.json["local"].uint ?? 0) == last else { return false }
    return lastOffered == nil || stored?.json["remote"] == lastOffered
  }

  private func isReady(for action: JSONValue, _ pause: Double) -> Bool {
    switch action["cmd"].string {
    case "start", "started again": return true
    case "put" where action["who"].string == "server", "bulk" where action["who"].string == "server",
      "purge":
      return true
    case let command? where command.hasPrefix("killed") && pause < 0.2:
      // In the middle: after as many answers as were recorded.
      let connection = link?.number
      let answers = session.messages.filter {
        $0.profile == "rev" && !$0.isRequest && $0.isFromClient && $0.connection == connection
      }.count
      return link?.answeredRevisions ?? 0 >= answers
    default:
      return [.offline, .stopped].contains(status.activity) || link?.hasPulled == true && isSettled
    }
  }

  private func act(_ action: JSONValue) {
    let isClient = action["who"].string == "client"
    switch action["cmd"].string ?? "" {
    case "put" where isClient: put([action])
    case "bulk" where isClient: put(action["docs"].array ?? [])
    case "stop" where isClient: replicator?.stop()
    case "close_connections": link?.connection.close()
    case "started again":
      isDown = false
      if status.activity == .offline { timer.advance(by: 1_000) }
    case let command where command.hasPrefix("killed"):
      isDown = true
      link?.connection.close(.webSocket(1006, "killed"))
    default: break
    }
  }

  private func put(_ edits: [JSONValue]) {
    do { try client.apply(edits, session.state.endClient) } catch { notes.note("edit", "\(error)") }
  }

  // MARK: What the server sends

  private func send(_ message: RecordedMessage, _ link: Link) {
    var properties = BLIPProperties()
    if let collection = message.properties["collection"] { properties.append("collection", collection) }
    if message.profile == "getAttachment" {
      for name in ["digest", "compress", "docID"] {
        if let value = message.properties[name] { properties.append(name, value) }
      }
      let request = BLIPRequest("getAttachment", properties)
      let digest = message.properties["digest"] ?? ""
      link.connection.send(request) { [weak self] result in
        self?.work.enqueue { [weak self] in
          guard let self else { return }
          notes.count()
          if case .success(let reply) = result, reply.error == nil {
            notes.compare("blob", digest, Array(reply.body), RecordedBlobs.all[digest])
          } else {
            notes.note("blob", "\(digest) isn't sent: \(result)")
          }
          attachmentsAnswered += 1
          advance()
        }
      }
      return
    }
    var request = BLIPRequest("changes", properties, body: .bytes(message.body))
    request.isUrgent = message.isUrgent
    request.isCompressed = message.isCompressed
    request.isNoReply = message.isNoReply
    if let last = message.items.last { lastOffered = last[0] }
    link.connection.send(request) { [weak self] result in
      self?.work.enqueue { [weak self] in
        guard let self, case .success(let reply) = result, !message.items.isEmpty else { return }
        answered(message, reply, link)
        advance()
      }
    }
  }

  private func answered(_ message: RecordedMessage, _ reply: BLIPMessage, _ link: Link) {
    notes.count()
    let recorded = replies[message.place]
    let items = (try? reply.body.withUnsafeBytes { try JSONValue(json: $0) })?.array ?? []
    guard reply.error == nil else { return notes.note("answer", "the answer to changes is an error") }
    if let recorded {
      notes.compare(
        "answer", "\(message.place)", properties(reply), recorded.properties,
        without: ["sendReplacementRevs"])
      for (place, item) in message.items.enumerated() {
        let own = place < items.count && !items[place].isNull ? items[place] : 0
        let theirs = place < recorded.items.count && !recorded.items[place].isNull ? recorded.items[place] : 0
        notes.compare("wanted", "\(item[1]) \(item[2])", own, theirs)
      }
    }
    for (place, item) in message.items.enumerated() where place < items.count && items[place].array != nil {
      sendRevision("\(item[1].string ?? "") \(item[2].string ?? "")", link)
    }
  }

  private func sendRevision(_ key: String, _ link: Link) {
    let all = sentByServer[key] ?? []
    let isKilled = session.messages.contains { $0.connection > link.number } || session.group == "v2"
    guard
      let message = all.first(where: { $0.connection == link.number })
        ?? (isKilled && session.name.contains("restart") ? nil : all.first)
    else {
      if all.isEmpty { notes.note("unrecorded", "the client wants \(key)") }
      return
    }
    var properties = BLIPProperties()
    let order = [
      "collection", "id", "rev", "replacedRev", "sequence", "deleted", "history", "noconflicts", "deltaSrc",
      "error",
    ]
    for name in order { if let value = message.properties[name] { properties.append(name, value) } }
    var request = BLIPRequest(message.profile, properties, body: .bytes(message.body))
    request.isCompressed = message.isCompressed
    request.isNoReply = message.isNoReply
    link.sentRevisions += 1
    link.connection.send(request) { [weak self] result in
      self?.work.enqueue { [weak self] in
        guard let self, case .success(let reply) = result else { return }
        link.answeredRevisions += 1
        if message.profile == "rev" {
          notes.count()
          let recorded = replies[message.place]
          notes.compare("rev-answer", key, reply.error?.code, recorded?.properties["Error-Code"].flatMap { Int($0) })
        }
        advance()
      }
    }
  }

  // MARK: What the client asks for

  private func properties(_ message: BLIPMessage) -> [String: String] {
    Dictionary(message.properties.entries.map { ($0.name, $0.value) }) { first, _ in first }
  }

  /// Answers with a recorded error. Returns false if the recorded answer isn't one.
  private func refuse(_ request: BLIPIncomingRequest, _ recorded: RecordedMessage?) -> Bool {
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

  private func getCollections(_ request: BLIPIncomingRequest) {
    let recorded = recorded("getCollections")
    if let recorded {
      notes.count()
      let body = try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) }
      notes.compare("getCollections", "body", body, recorded.json)
      if refuse(request, replies[recorded.place]) { return }
      var first = replies[recorded.place]?.items.first ?? [:]
      let revision = first.remove("rev")?.string
      if link?.number == session.connections.first { takeStored(first, revision) }
    } else if let plain = self.recorded("getCheckpoint"), let reply = replies[plain.place], reply.kind == .reply {
      takeStored(reply.json ?? .null, reply.properties["rev"])
    }
    var item = stored?.json ?? [:]
    if let stored { item["rev"] = .string("\(stored.revision)-cc") }
    request.reply(BLIPReply(body: .bytes((try? JSONValue.array([item]).jsonText()) ?? [])))
  }

  private func getCheckpoint(_ request: BLIPIncomingRequest) {
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

  private func setCheckpoint(_ request: BLIPIncomingRequest) {
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

  private func subChanges(_ request: BLIPIncomingRequest) {
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
  private func proposed(_ request: BLIPIncomingRequest) {
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

  private func rev(_ request: BLIPIncomingRequest) {
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

  private func answerHeld() {
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

  private func norev(_ request: BLIPIncomingRequest) {
    notes.count()
    let properties = properties(request.message)
    if sentByClient["\(properties["id"] ?? "") \(properties["rev"] ?? "")"]?.profile != "norev" {
      notes.note("norev", "\(properties)")
    }
    request.reply()
  }

  private func getAttachment(_ request: BLIPIncomingRequest) {
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
      if case .send(let message) = step, message.items.isEmpty {} else {
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
        isFurther ? "further" : "checkpoint.local", "at the end", stored?.json["local"] ?? .null, last["local"])
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

extension Workers {
  /// Runs `body` after everything that was enqueued, and waits for it.
  func sync<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    let result = Lock<Result?>(nil)
    let done = CountingSemaphore()
    enqueue {
      let value = body()
      result.withLock { $0 = value }
      done.signal()
    }
    done.wait()
    guard let value = result.withLock({ $0 }) else { preconditionFailure("the work has run") }
    return value
  }
}

extension ReplayDatabase {
  /// Makes edits of the recording's test, with the revisions that they had there.
  func apply(_ edits: [JSONValue], _ end: RecordedDatabase) throws {
    try database.replicatingChanges { store in
      let revisions = try edits.map { edit -> SyncRevision in
        let id = edit["id"].string ?? ""
        let current = try store.currentRevisions(of: [id])[0]?.revision
        let tree = end.documents.first { $0.id == id }?.revisions ?? []
        let isDeleted = edit["deleted"].bool ?? false
        let found =
          tree.first { $0.parent == current && $0.isDeleted == isDeleted }?.id ?? end.current[id]
        guard let found else { throw CocoaError(.fileReadUnknown) }
        return SyncRevision(
          id: id, history: [found] + (current.map { [$0] } ?? []), isDeleted: isDeleted,
          body: .json(try edit["body"].jsonText()))
      }
      for outcome in try store.apply(revisions, .report) {
        guard case .added = outcome else { throw CocoaError(.fileWriteUnknown) }
      }
    }
  }
}
