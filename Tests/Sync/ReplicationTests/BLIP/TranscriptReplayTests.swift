import BLIP
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite(
  "Replayed sessions",
  .enabled(
    if: transcriptFolder != nil, "TOUCHSTONE_DATA is not set: there are no recorded sessions to replay"))
struct TranscriptReplayTests {
  static let engines: [EngineName] = onlyEngines ?? [.sqlite, .lmdb]
  /// All sessions are played on each of these: on an engine, or, in a short run, on one after the other.
  static let runs = isShort ? [engines] : engines.map { [$0] }

  @Test("our client does what the recorded clients did", arguments: runs) func client(_ engines: [EngineName])
    throws
  {
    var total = ReplayTotal()
    for (index, session) in TranscriptSession.all.enumerated() {
      let engine = engines[index % engines.count]
      if let reason = ReplayExceptions.reason(session, .client) {
        total.skipped[reason, default: 0] += 1
        continue
      }
      let notes = ReplayNotes()
      do {
        let database = try ReplayDatabase(session, "client", engine)
        let server = RecordedServer(session, database, notes)
        var configuration = Self.configuration(session, database.database, server)
        // The command pushed first, and then did both.
        let isCommand = session.name == "v3/cblite-tool"
        if isCommand { configuration.direction = .push }
        var status = server.run(configuration)
        if isCommand {
          configuration.direction = .pushAndPull
          status = server.run(configuration)
        }
        try server.finish(status)
        total.add(session, notes, own: server.clientBytes, recorded: session.clientBytes)
        try expect(database.database.check(deep: true).isEmpty, "\(session.name)")
      } catch { notes.note("error", "\(error)") }
      total.judge(session.name, .client, notes)
    }
    total.end("our client", .client, engines)
  }

  @Test("our passive side answers the recorded clients as the recorded servers did", arguments: runs)
  func server(_ engines: [EngineName]) throws {
    var total = ReplayTotal()
    for (index, session) in TranscriptSession.all.enumerated() {
      let engine = engines[index % engines.count]
      if let reason = ReplayExceptions.reason(session, .server) {
        total.skipped[reason, default: 0] += 1
        continue
      }
      let notes = ReplayNotes()
      var bytes: UInt64 = 0
      do {
        let database = try ReplayDatabase(session, "server", engine)
        for connection in session.connections {
          let client = RecordedClient(session, connection: connection, database, notes)
          guard client.run() else { break }
          bytes += client.serverBytes
        }
        // What the test did on the server after the last connection.
        let last = (session.connections.last ?? 1) + 1
        _ = RecordedClient(session, connection: last, database, notes).run()
        let state = session.state
        try database.compare(with: state.endServer, state, marks: false) { notes.note("end.\($0)", $1) }
        try database.compareCheckpoints(state.endServer.value["peerCheckpoints"], isPeer: true) {
          notes.note("end.\($0)", $1)
        }
        total.add(session, notes, own: bytes, recorded: session.serverBytes)
        try expect(database.database.check(deep: true).isEmpty, "\(session.name)")
      } catch { notes.note("error", "\(error)") }
      total.judge(session.name, .server, notes)
    }
    total.end("our passive side", .server, engines)
  }

  @Test("named collections and version vectors get the documented refusals", arguments: engines)
  func refused(_ engine: EngineName) throws {
    var count = 0
    for session in TranscriptSession.all {
      guard session.name.contains("/collections") || session.group == "v4" else { continue }
      count += 1
      let directory = TemporaryDirectory()
      defer { withExtendedLifetime(directory) {} }
      let database = try Database.open("test", in: directory.path, options: options(engine))
      let client = ScriptedClient(database)
      for message in session.messages where message.isRequest && message.isFromClient {
        var properties = BLIPProperties()
        for (name, value) in message.properties where name != "Profile" { properties.append(name, value) }
        let body = String(decoding: message.body, as: UTF8.self)
        let reply = try client.ask(message.profile, properties, body)
        if message.profile == "getCollections" {
          let names = message.json?["collections"].array ?? []
          expect(reply.json, equals: .array(names.map { $0 == "_default" ? [:] : .null }), "\(session.name)")
        } else if message.profile == "subChanges" {
          let isVector = message.properties["versioning"] == "version-vectors"
          let first = session.messages.first { $0.profile == "getCollections" }?.json ?? .null
          let name = first["collections"][Int(message.properties["collection"] ?? "0") ?? 0]
          let expected = name != "_default" ? "HTTP 404" : isVector ? "LiteCore 501" : "none"
          expect(
            (reply.error.map { "\($0.domain) \($0.code)" } ?? "none"), equals: expected, "\(session.name)")
        }
        // The recorded client goes on because its collections are there; here the refusal is the end.
        if message.profile == "subChanges" { break }
      }
      try expect(database.lastSequence, equals: 0)
      try database.close()
    }
    expect(count == 8 || environmentVariable("TOUCHSTONE_TRANSCRIPT") != nil)
  }

  /// What the recorded client was told to do.
  static func configuration(
    _ session: TranscriptSession, _ database: Database, _ server: RecordedServer
  ) -> ReplicatorConfiguration {
    var configuration = ReplicatorConfiguration(database, ReplicatorTarget(server.connector))
    let start = session.start
    let (push, pull) = (start["push"].int ?? 2, start["pull"].int ?? 2)
    configuration.direction = push == 0 ? .pull : pull == 0 ? .push : .pushAndPull
    configuration.isContinuous = push == 3 || pull == 3
    configuration.resetsCheckpoint = start["reset"].bool ?? false
    configuration.pushesConflicts = start["options"]["outgoingConflicts"].bool ?? false
    configuration.documentIDs = start["coll_options"]["docIDs"].array?.compactMap(\.string)
    configuration.channels = start["coll_options"]["channels"].array?.compactMap(\.string)
    configuration.timer = server.timer
    configuration.checkpointDelay = ReplayTimer.atOnce
    configuration.maximumRetries = 9
    configuration.retriesAfterNormalClose = false
    return configuration
  }
}

/// Adds up what the replays of one side have done.
struct ReplayTotal {
  var sessions = 0
  var compared = 0
  var ownBytes: UInt64 = 0
  var recordedBytes = 0
  var skipped: [String: Int] = [:]
  private var seen: Set<Int> = []

  mutating func add(_ session: TranscriptSession, _ notes: ReplayNotes, own: UInt64, recorded: Int) {
    sessions += 1
    compared += notes.compared
    ownBytes += own
    recordedBytes += recorded
  }

  /// Expects only differences that are decided.
  mutating func judge(_ name: String, _ side: ReplayExceptions.Side, _ notes: ReplayNotes) {
    for difference in notes.differences {
      let known = ReplayExceptions.decided.indices.first { index in
        ReplayExceptions.decided[index].covers(name, side, difference)
      }
      if let known {
        seen.insert(known)
      } else {
        Issue.record("\(name): \(difference.kind): \(difference.detail)")
      }
    }
  }

  func end(_ what: String, _ side: ReplayExceptions.Side, _ engines: [EngineName]) {
    // A difference that isn't there any more doesn't stay in the table.
    if environmentVariable("TOUCHSTONE_TRANSCRIPT") == nil {
      for (index, decided) in ReplayExceptions.decided.enumerated()
      where decided.side == side && !decided.isChance && !seen.contains(index) {
        Issue.record("this difference isn't seen any more: \(decided)")
      }
    }
    print(
      "\(what) on \(engines.map { "\($0)" }.joined(separator: " and ")): \(sessions) sessions replayed, \(compared) messages compared, \(ownBytes) bytes of frames for \(recordedBytes) recorded; not replayed: \(skipped.sorted { $0.key < $1.key }.map { "\($0.value) (\($0.key))" }.joined(separator: ", "))"
    )
  }
}
