// A server that takes and refuses what LiteCore takes and refuses, where a listener of this library takes more.

import BLIP
import Documents
import Fleece
import Storage

@testable import ReplicationBLIP

/// The documents of a server with the rules of LiteCore for histories, proposals and conflicts.
final class OriginalServer: Sendable {
  struct Document {
    /// The revisions with their parents, empty for none.
    var parents: [String: String]
    var current: String
    var isDeleted: Bool
    var json: String
    var sequence: Int
  }

  struct State {
    var documents: [String: Document] = [:]
    var sequence = 0
    var checkpoints: [String: (revision: Int, json: [UInt8])] = [:]
    /// Histories that were refused because of their generations.
    var badHistories: [String] = []
  }

  /// The revisions that a tree keeps.
  let depth: Int
  /// Whether it says which revision makes a conflict, as 3.2 and later do.
  let saysRevision: Bool
  let state = Lock(State())

  init(depth: Int = 20, saysRevision: Bool) {
    self.depth = depth
    self.saysRevision = saysRevision
  }

  func current(_ id: String) -> String? { state.withLock { $0.documents[id]?.current } }
  func json(_ id: String) -> JSONValue? {
    state.withLock { $0.documents[id]?.json }.flatMap { text in
      try? Array(text.utf8).withUnsafeBytes { try JSONValue(json: $0) }
    }
  }

  /// Loses everything, also the checkpoints.
  func erase() { state.withLock { $0 = State() } }

  /// A server with these documents. Some answers may be the test's.
  func scripted(
    remoteID: String = "ws://localhost:4984/db/_blipsync", _ more: [String: ScriptedServer.Answer] = [:]
  ) -> ScriptedServer {
    let answers: [String: ScriptedServer.Answer] = [
      "getCollections": { _, request in request.reply(BLIPErrorReply(domain: "BLIP", code: 404)) },
      "getCheckpoint": { [self] _, request in getCheckpoint(request) },
      "setCheckpoint": { [self] _, request in setCheckpoint(request) },
      "proposeChanges": { [self] _, request in propose(request) },
      "subChanges": { [self] server, request in subscribe(server, request) },
      "rev": { [self] _, request in take(request) },
    ]
    return ScriptedServer(remoteID: remoteID, answers.merging(more) { $1 })
  }

  // MARK: Checkpoints

  private func getCheckpoint(_ request: BLIPIncomingRequest) {
    let client = request.message.properties["client"] ?? ""
    guard let stored = state.withLock({ $0.checkpoints[client] }) else {
      return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404))
    }
    request.reply(BLIPReply(["rev": "\(stored.revision)-cc"], body: .bytes(stored.json)))
  }

  private func setCheckpoint(_ request: BLIPIncomingRequest) {
    let properties = request.message.properties
    let client = properties["client"] ?? ""
    let new = state.withLock { state -> Int? in
      let stored = state.checkpoints[client]?.revision ?? 0
      guard properties["rev"] ?? "" == (stored == 0 ? "" : "\(stored)-cc") else { return nil }
      state.checkpoints[client] = (stored + 1, Array(request.message.body))
      return stored + 1
    }
    guard let new else { return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 409)) }
    request.reply(BLIPReply(["rev": "\(new)-cc"]))
  }

  // MARK: Push

  private func propose(_ request: BLIPIncomingRequest) {
    let statuses = (request.message.json.array ?? []).map { item -> String in
      let (id, revision, parent) = (item[0].string ?? "", item[1].string ?? "", item[2].string ?? "")
      let document = state.withLock { $0.documents[id] }
      let current = document?.current ?? ""
      if current == revision { return "304" }
      if current == parent || (parent.isEmpty && document?.isDeleted ?? true) { return "0" }
      return saysRevision ? "{\"status\":409,\"rev\":\"\(current)\"}" : "409"
    }
    request.reply(
      BLIPReply(
        ["maxHistory": "\(depth)", "blobs": "true"],
        body: .bytes(Array("[\(statuses.joined(separator: ","))]".utf8))))
  }

  private enum Refusal: Error { case badHistory, conflict }

  func take(_ request: BLIPIncomingRequest) {
    let properties = request.message.properties
    let older = (properties["history"] ?? "").split(separator: ",").map(String.init)
    let history = [properties["rev"] ?? ""] + older
    do {
      try insert(
        properties["id"] ?? "", history, properties.isTrue("deleted"), request.message.text,
        allowsConflict: !properties.isTrue("noconflicts"))
      request.reply()
    } catch Refusal.badHistory {
      state.withLock { $0.badHistories.append(history.joined(separator: ",")) }
      request.reply(BLIPErrorReply(domain: "LiteCore", code: 14, text: "Bad revision history"))
    } catch {
      request.reply(BLIPErrorReply(domain: "HTTP", code: 409))
    }
  }

  private func insert(
    _ id: String, _ history: [String], _ isDeleted: Bool, _ json: String, allowsConflict: Bool
  ) throws {
    try state.withLock { (state: inout State) throws in
      var document = state.documents[id]
      var last: UInt64 = 0
      var parent: Int?
      for (index, revision) in history.enumerated() {
        let generation = RevisionID(revision)?.generation ?? 0
        // A gap may come only after as many revisions as a tree keeps.
        guard last == 0 || generation == last - 1 || (generation < last && index >= depth - 1), generation > 0
        else { throw Refusal.badHistory }
        last = generation
        if document?.parents[revision] != nil {
          parent = index
          break
        }
      }
      if parent == 0 { return }
      let isConflict = document.map { document in parent.map { history[$0] != document.current } ?? true }
      if isConflict ?? false, !allowsConflict { throw Refusal.conflict }
      var parents = document?.parents ?? [:]
      for index in 0..<(parent ?? history.count) {
        parents[history[index]] = index + 1 < history.count ? history[index + 1] : ""
      }
      let kept = parents.keys.sorted {
        (RevisionID($0)?.generation ?? 0) > (RevisionID($1)?.generation ?? 0)
      }.prefix(depth)
      parents = parents.filter { kept.contains($0.key) }
      state.sequence += 1
      document = Document(
        parents: parents, current: history[0], isDeleted: isDeleted, json: json, sequence: state.sequence)
      state.documents[id] = document
    }
  }

  // MARK: Pull

  private func subscribe(_ server: ScriptedServer, _ request: BLIPIncomingRequest) {
    let since = request.message.properties["since"].flatMap { Int($0) } ?? 0
    let chosen = (request.message.json["docIDs"].array).map { Set($0.compactMap(\.string)) }
    request.reply()
    let changed = state.withLock { $0.documents }
      .filter { $0.value.sequence > since && chosen?.contains($0.key) ?? true }
      .sorted { $0.value.sequence < $1.value.sequence }
    if !changed.isEmpty {
      let items = changed.map { id, document in
        "[\(document.sequence),\"\(id)\",\"\(document.current)\",\(document.isDeleted ? 1 : 0)]"
      }
      server.offer("[\(items.joined(separator: ","))]") { reply in
        for (answer, (id, document)) in zip(reply.json.array ?? [], changed) where answer.array != nil {
          var properties: BLIPProperties = [
            "id": id, "rev": document.current, "sequence": "\(document.sequence)",
          ]
          if document.isDeleted { properties.append("deleted", "1") }
          var older: [String] = []
          var next = document.parents[document.current] ?? ""
          while let parent = document.parents[next] {
            older.append(next)
            next = parent
          }
          if !older.isEmpty { properties.append("history", older.joined(separator: ",")) }
          server.rev(properties, document.json)
        }
      }
    }
    server.offer("[]")
  }
}
