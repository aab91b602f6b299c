// Peers whose messages a test writes: a server for a replicator, and a client for the passive side.

import BLIP
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationBLIP

/// Waits at most two minutes for a value that comes on another thread.
final class Awaited<Value: Sendable>: Sendable {
  private let value = Lock<Value?>(nil)
  private let semaphore = CountingSemaphore()

  func set(_ new: Value) {
    value.withLock { $0 = new }
    semaphore.signal()
  }

  func get() throws -> Value {
    guard semaphore.wait(seconds: 120), let value = value.withLock({ $0 }) else {
      throw CocoaError(.userCancelled)
    }
    return value
  }
}

/// A request as it came.
struct ReceivedRequest: Sendable {
  let profile: String
  let properties: BLIPProperties
  let body: [UInt8]
  subscript(_ name: String) -> String? { properties[name] }
  var json: JSONValue { (try? body.withUnsafeBytes { try JSONValue(json: $0) }) ?? .null }
}

/// Answers a replicator. A profile without an answer of the test gets the usual one.
final class ScriptedServer: Sendable {
  typealias Answer = @Sendable (ScriptedServer, BLIPIncomingRequest) -> Void

  private struct State {
    var connection: BLIPConnection?
    var requests: [ReceivedRequest] = []
    var checkpoint = 0
    var connections = 0
  }
  private let state = Lock(State())
  private let answers: [String: Answer]
  private let subprotocol: String?
  private let remoteID: String
  /// What its client takes.
  private let clientLimits: BLIPLimits
  /// The last checkpoint that was stored.
  let checkpoint = Lock<JSONValue?>(nil)
  /// The checkpoint that it has from earlier.
  let kept = Lock<JSONValue?>(nil)

  init(
    subprotocol: String? = "BLIP_3+CBMobile_3", remoteID: String = "ws://localhost:4984/db/_blipsync",
    clientLimits: BLIPLimits = BLIPLimits(),
    _ answers: [String: Answer] = [:]
  ) {
    self.answers = answers
    self.clientLimits = clientLimits
    self.remoteID = remoteID
    self.subprotocol = subprotocol
  }

  /// The requests so far, without those for checkpoints.
  var requests: [ReceivedRequest] { state.withLock { $0.requests } }
  func requests(_ profile: String) -> [ReceivedRequest] { requests.filter { $0.profile == profile } }
  var connections: Int { state.withLock { $0.connections } }

  static let usual: [String: Answer] = [
    "getCollections": { server, request in
      var checkpoint = server.kept.withLock { $0 }?.object ?? [:]
      if !checkpoint.isEmpty { checkpoint["rev"] = "1-cc" }
      let text = try? JSONValue.array([.object(checkpoint)]).jsonText()
      request.reply(BLIPReply(body: .bytes(text ?? [])))
    },
    "getCheckpoint": { _, request in request.reply(BLIPErrorReply(domain: "HTTP", code: 404)) },
    "setCheckpoint": { server, request in server.setCheckpoint(request) },
    "subChanges": { server, request in
      request.reply()
      server.offer("[]")
    },
    "proposeChanges": { _, request in
      request.reply(
        BLIPReply(["maxHistory": "20", "blobs": "true", "deltas": "true"], body: .bytes(Array("[]".utf8))))
    },
    "rev": { _, request in request.reply() }, "norev": { _, request in request.reply() },
  ]

  var connector: BLIPConnector {
    BLIPConnector(
      remoteID: remoteID, name: "scripted", limits: clientLimits
    ) { [self] _, done in
      let (client, server) = PipeTransport.pair()
      let connection = BLIPConnection(server, name: "scripted server")
      state.withLock { state in
        state.connection = connection
        state.checkpoint = 0
        state.connections += 1
      }
      for (profile, answer) in Self.usual.merging(answers, uniquingKeysWith: { $1 }) {
        connection.onRequest(profile) { [self] request in
          let message = request.message
          state.withLock {
            $0.requests.append(
              ReceivedRequest(profile: profile, properties: message.properties, body: Array(message.body)))
          }
          answer(self, request)
        }
      }
      connection.start()
      done(.success(BLIPConnector.Opened(client, subprotocol: subprotocol)))
    }
  }

  private func setCheckpoint(_ request: BLIPIncomingRequest) {
    let revision = state.withLock { state in
      state.checkpoint += 1
      return state.checkpoint
    }
    checkpoint.withLock {
      $0 = try? request.message.body.withUnsafeBytes { try JSONValue(json: $0) }
    }
    request.reply(BLIPReply(["rev": "\(revision)-cc"]))
  }

  /// Offers changes. `answered` gets the items of the answer.
  func offer(_ json: String, _ answered: @escaping @Sendable (BLIPMessage) -> Void = { _ in }) {
    var request = BLIPRequest(
      "changes", state.withLock { $0.requests }.last?["collection"].map { ["collection": $0] } ?? [:],
      body: .bytes(Array(json.utf8)))
    request.isNoReply = json == "[]"
    send(request, answered)
  }

  func send(_ request: BLIPRequest, _ answered: @escaping @Sendable (BLIPMessage) -> Void = { _ in }) {
    state.withLock { $0.connection }?.send(request) { result in
      if case .success(let reply) = result { answered(reply) }
    }
  }

  /// Sends a revision.
  func rev(
    _ properties: BLIPProperties, _ json: String,
    _ answered: @escaping @Sendable (BLIPMessage) -> Void = { _ in }
  ) { send(BLIPRequest("rev", properties, body: .bytes(Array(json.utf8))), answered) }

  func close(_ close: TransportClose = .normal) { state.withLock { $0.connection }?.close(close) }
}

extension ScriptedServer {
  /// A server that offers a list, sends revisions when the list is answered, and then says that this was all.
  static func offering(
    _ list: String, caughtUp: String = "[]", clientLimits: BLIPLimits = BLIPLimits(),
    _ revisions: [(BLIPProperties, String)] = []
  ) -> ScriptedServer {
    ScriptedServer(
      clientLimits: clientLimits,
      [
        "subChanges": { server, request in
          request.reply()
          server.offer(list) { _ in
            for (properties, body) in revisions {
              var all = properties
              if let collection = server.requests.last?["collection"] { all.append("collection", collection) }
              server.rev(all, body)
            }
            var end = BLIPRequest(
              "changes", server.requests.last?["collection"].map { ["collection": $0] } ?? [:],
              body: .bytes(Array(caughtUp.utf8)))
            end.isNoReply = true
            server.send(end)
          }
        }
      ])
  }
}

/// Sends requests to the passive side.
final class ScriptedClient: Sendable {
  let connection: BLIPConnection
  private let responder: BLIPResponder

  /// `answers` are those to the server's requests.
  init(
    _ database: Database, _ options: PassiveResponder.Options = PassiveResponder.Options(),
    serverLimits: BLIPLimits = BLIPLimits(),
    _ answers: [String: @Sendable (BLIPIncomingRequest) -> Void] = [:]
  ) {
    let (client, server) = PipeTransport.pair()
    connection = BLIPConnection(client, name: "scripted client")
    responder = BLIPResponder(
      BLIPConnection(server, limits: serverLimits, name: "server"), database, options)
    for (profile, answer) in answers { connection.onRequest(profile, answer) }
    responder.start()
    connection.start()
  }

  deinit { connection.close() }

  func ask(_ profile: String, _ properties: BLIPProperties = [:], _ body: String = "") throws -> BLIPMessage {
    let answer = Awaited<Result<BLIPMessage, any Error>>()
    connection.send(BLIPRequest(profile, properties, body: .bytes(Array(body.utf8)))) { answer.set($0) }
    return try answer.get().get()
  }

  func error(_ profile: String, _ properties: BLIPProperties = [:], _ body: String = "") throws -> String {
    let reply = try ask(profile, properties, body)
    return reply.error.map { "\($0.domain) \($0.code)" } ?? "none"
  }
}

extension BLIPMessage {
  var json: JSONValue { (try? body.withUnsafeBytes { try JSONValue(json: $0) }) ?? .null }
  var text: String { String(decoding: body, as: UTF8.self) }
}

/// Replicates with a scripted server until the replicator has stopped.
func replicate(
  _ database: Database, _ server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation,
  _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
) throws -> Outcome {
  var configuration = ReplicatorConfiguration(database, ReplicatorTarget(server.connector))
  configuration.maximumRetries = 0
  change(&configuration)
  return try run(configuration, sourceLocation: sourceLocation)
}
