// Plays the recorded server to a client of this library.

import BLIP
import Documents
import Fleece
import Foundation
import TestSupport
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// Answers the client's requests with what was recorded for the same requests, offers the recorded changes, and sends
/// the recorded revisions for those that the client wants. It does what the recording's test did: edits, kills, stops.
final class RecordedServer: @unchecked Sendable {
  enum Step {
    case send(RecordedMessage)
    case action(JSONValue, pause: Double)
  }

  /// One connection of the client.
  final class Link: @unchecked Sendable {
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

  let session: TranscriptSession
  let notes: ReplayNotes
  let client: ReplayDatabase
  let timer = ReplayTimer()
  let work = Workers()
  private let shown = Lock("")

  // Used on the thread `work` only.
  var replicator: Replicator?
  var steps: [Step] = []
  var link: Link?
  var unusedConnections: [Int]
  var isDown = false
  var status = ReplicatorStatus(activity: .connecting)
  var stored: (json: JSONValue, revision: Int)?
  var lastOffered: JSONValue?
  var clientRevisions: Set<String> = []
  var attachmentsAnswered = 0
  var heldReplies: [(request: BLIPIncomingRequest, attachments: Int, reply: RecordedMessage?)] = []
  /// What the client has proposed: document, revision, parent.
  var proposed: Set<String> = []
  var clientEnds: [CountingTransport] = []

  // What is recorded.
  var statuses: [String: JSONValue] = [:]
  var sentByClient: [String: RecordedMessage] = [:]
  var replies: [Int: RecordedMessage] = [:]
  var wanted: [String: JSONValue] = [:]
  var sentByServer: [String: [RecordedMessage]] = [:]
  /// Whether the recorded server refuses the property `collection`, as 3.2 does.
  let refusesCollection: Bool

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

  static func proposal(_ item: JSONValue, _ profile: String) -> String {
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
        statuses[Self.proposal(item, message.profile)] =
          place < message.items.count ? message.items[place] : 0
      }
    default: break
    }
  }

  func recorded(_ profile: String) -> RecordedMessage? {
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
  func advance() {
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
          notes.compare(
            "rev-answer", key, reply.error?.code, recorded?.properties["Error-Code"].flatMap { Int($0) })
        }
        advance()
      }
    }
  }
}
