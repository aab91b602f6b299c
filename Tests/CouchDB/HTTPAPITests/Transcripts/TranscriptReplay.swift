import Fleece
import Foundation
import Storage
import TestSupport
import Touchstone

@testable import HTTPAPI

/// Plays a recorded session against a fresh service, in the recorded order, and compares the answers.
///
/// Time is the recording's: heartbeats and timeouts come when the recorded ones came. An exchange that isn't a feed is answered before
/// the next event. A feed stays open until its recorded end, and time waits until it has brought what the recorded one had brought.
final class TranscriptReplay {
  /// A feed that is open.
  private struct OpenFeed {
    let exchange: RecordedExchange
    let target: String
    let response: Response
  }

  /// What happens next.
  private enum Moment {
    case begin(RecordedExchange)
    case end(RecordedExchange)
    case write(RecordedWrite)
    /// A write of which the recording gives a description only.
    case request(method: String, target: String, body: String)
  }

  /// Who copies documents in sessions of CouchDB's replicator.
  enum Replicator {
    /// The recorded one: its requests are sent.
    case recorded
    /// The service's own: requests to replicate are sent.
    case own
  }

  private let recording: Recording
  private let replicator: Replicator
  private let client: APIClient
  private let timer: ManualTimer
  private var comparison = AnswerComparison()
  private var feeds: [Int: OpenFeed] = [:]
  private(set) var report: ReplayReport
  /// When the last exchange that wasn't a feed ended, in the recording.
  private var lastEnd = 0.0
  /// Clients that do nothing for that long wait for something: a view that is brought up to date, a compaction.
  private static let pause = 0.9

  init(_ recording: Recording, _ engine: EngineName, replicator: Replicator = .recorded) throws {
    self.recording = recording
    self.replicator = replicator
    timer = ManualTimer()
    client = try APIClient(engine, SessionStart.configuration(recording.name), timer: timer)
    client.service.start()
    report = ReplayReport(session: recording.name, replicator)
    if case .own = replicator { comparison.kindsOnly = ReplicationDecisions.kindsOnly }
  }

  /// Plays the session.
  func run() throws {
    try learnCommonRevision()
    try SessionStart.prepare(recording.name, replicator) { method, target, headers, body in
      let body = comparison.tokens.translate(request: body)
      let response = try client.ask(method, target, headers: headers, body: body, user: SessionStart.admin)
      if response.status >= 300 {
        report.problems.append(
          "preparing \(method) \(target.prefix(80)): \(response.status) \(response.text.prefix(200))")
      }
    }
    try learnUnseenSequences()
    for (time, moment) in moments() {
      try awaitFeeds(until: time)
      timer.advance(by: max(0, time - timer.now))
      switch moment {
      case .begin(let exchange): try begin(exchange)
      case .end(let exchange): try end(exchange)
      case .write(let write):
        try self.write(write)
        try awaitReplications()
      case .request(let method, let target, let body):
        let headers = [("Content-Type", "application/json")]
        let target = comparison.tokens.translate(request: target, isEscaped: true)
        let response = try client.ask(
          method, target, headers: headers, body: Array(body.utf8), user: SessionStart.admin)
        if response.status >= 300 { report.problems.append("\(method) \(target): \(response.status)") }
        _ = response.body()
      }
    }
    report.compared = comparison.compared
  }

  /// Learns our name for the first revision of `{"n":1}`. Clients write such documents in many sessions, and histories of others that
  /// exist before have CouchDB's name for it.
  private func learnCommonRevision() throws {
    let user = SessionStart.admin
    _ = try client.ask("PUT", "/scratch", user: user)
    let answer = try client.ask("PUT", "/scratch/a", body: Array(#"{"n":1}"#.utf8), user: user).json()
    _ = try client.ask("DELETE", "/scratch", user: user)
    _ = comparison.tokens.match(SessionStart.commonRevision, answer["rev"].string ?? "")
  }

  /// Learns our names for sequences that a client names although no answer has shown them.
  private func learnUnseenSequences() throws {
    for (token, database, next) in SessionStart.unseenSequences(recording.name) {
      let changes = try client.ask("GET", "/\(database)/_changes", user: SessionStart.admin).json()
      let rows = changes["results"].array ?? []
      guard let index = rows.firstIndex(where: { $0["id"].string == next }), index > 0,
        comparison.tokens.match(token, rows[index - 1]["seq"].string ?? "")
      else {
        report.problems.append("\(database) has no change before that of \(next)")
        continue
      }
    }
  }

  /// What happens, in the order of the recording. The end of a feed is a moment of its own.
  private func moments() -> [(Double, Moment)] {
    var moments: [(Double, Moment)] = []
    let starts = starts()
    for event in recording.events {
      switch event {
      case .exchange(let exchange):
        moments.append((starts[exchange.number] ?? exchange.start, .begin(exchange)))
        if exchange.isFeed { moments.append((exchange.end, .end(exchange))) }
      case .write(let write):
        guard write.request == nil else {
          moments.append((write.time, .write(write)))
          continue
        }
        for described in SessionStart.describedWrites(write.text) {
          moments.append(
            (
              write.time + described.delay,
              .request(
                method: described.method, target: described.target, body: described.body)
            ))
        }
      }
    }
    for write in SessionStart.unrecordedWrites(recording.name) {
      moments.append((write.time, .request(method: write.method, target: write.target, body: write.body)))
    }
    // Equal times keep their order.
    return moments.enumerated().sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }.map(
      \.element)
  }

  /// When exchanges begin that were under way at once: in the order of their writes.
  private func starts() -> [Int: Double] {
    let recorded = Dictionary(uniqueKeysWithValues: recording.exchanges.map { ($0.number, $0.start) })
    var starts: [Int: Double] = [:]
    for group in SessionStart.simultaneousWrites(recording.name) {
      for (number, start) in zip(group, group.compactMap { recorded[$0] }.sorted()) { starts[number] = start }
    }
    return starts
  }

  // MARK: Exchanges

  private func begin(_ exchange: RecordedExchange) throws {
    report.exchanges += 1
    try SessionStart.between(recording.name, replicator, before: exchange) { method, target, body in
      let response = try client.ask(
        method, target, headers: [("Content-Type", "application/json")], body: body, user: SessionStart.admin)
      if response.status >= 300 { report.problems.append("\(method) \(target): \(response.status)") }
    }
    let fate = TranscriptTables.fate(of: exchange, in: recording.name, replicator)
    if case .left(let reason) = fate { return report.leave(exchange, reason) }
    let target = comparison.tokens.translate(request: exchange.target, isEscaped: true)
    let body = comparison.tokens.translate(request: exchange.body)
    let context = SessionStart.context(of: exchange) ?? .anonymous
    let headers = self.headers(of: exchange, bodyCount: body.count)
    if case .answered(let status, let reason) = fate {
      let response = try client.ask(exchange.method, target, headers: headers, body: body, as: context)
      return report.answer(exchange, response, expecting: status, reason)
    }
    guard exchange.isFeed else {
      let ask = { [client] in
        try client.ask(exchange.method, target, headers: headers, body: body, as: context)
      }
      defer { lastEnd = exchange.end }
      let waits = exchange.start - lastEnd > Self.pause || replicator == .own
      guard exchange.method == "GET", waits else {
        let response = try ask()
        return compare(exchange, response, response.body())
      }
      // The recorded client has waited for something that goes on in the background.
      let before = comparison
      var response = try ask()
      wait {
        comparison = before
        let answer = response.body()
        let found = compared(exchange, response, answer)
        if found.allSatisfy({ TranscriptTables.decision(recording.name, exchange, $0, replicator) != nil }) {
          return true
        }
        if let again = try? ask() { response = again }
        return false
      }
      comparison = before
      return compare(exchange, response, response.body())
    }
    feeds[exchange.number] = OpenFeed(
      exchange: exchange, target: target,
      response: try client.begin(exchange.method, target, headers: headers, body: body, as: context))
  }

  private func headers(of exchange: RecordedExchange, bodyCount: Int) -> [(String, String)] {
    exchange.headers.compactMap { name, value in
      switch name.lowercased() {
      case "content-length": (name, String(bodyCount))
      case "transfer-encoding", "expect": nil
      case "if-none-match", "if-match": (name, comparison.tokens.translate(tags: value, of: exchange.target))
      case "destination": (name, comparison.tokens.translate(request: value, isEscaped: true))
      default: (name, comparison.tokens.translate(request: value))
      }
    }
  }

  private func compare(_ exchange: RecordedExchange, _ response: Response, _ body: [UInt8]) {
    // CouchDB's tag of a list changes with what isn't in the list. A tag of ours that still holds is no difference.
    if exchange.status == 200, response.status == 304, exchange.header("if-none-match") != nil {
      report.stillHolding += 1
      return
    }
    report.add(compared(exchange, response, body), exchange)
  }

  private func compared(_ exchange: RecordedExchange, _ response: Response, _ body: [UInt8])
    -> [AnswerDifference]
  {
    comparison.compare(
      exchange, target: exchange.target, status: response.status,
      headers: response.headers.map { (name: $0.name, value: $0.value) }, body: body)
  }

  private func write(_ write: RecordedWrite) throws {
    guard let (method, target, body) = write.request else { return }
    // The write is at an end that the recording doesn't show.
    let database = target.dropFirst().prefix { $0 != "/" }
    if try client.ask("HEAD", "/\(database)", user: SessionStart.admin).status == 404 { return }
    var bytes: [UInt8] = []
    var type = "application/json"
    if let text = body.string {
      // Of bytes that aren't text the recording gives the number.
      let isGiven = text != "(13 bytes)"
      bytes = Array((isGiven ? text : "third edition").utf8)
      if !isGiven { type = "text/plain" }
    } else if !body.isNull {
      bytes = comparison.tokens.translate(request: try body.jsonText())
    }
    let response = try client.ask(
      method, comparison.tokens.translate(request: target, isEscaped: true),
      headers: [("Content-Type", type)],
      body: bytes, user: SessionStart.admin)
    // What it made is in later answers of the recorded client.
    let answer = (try? response.json()) ?? .null
    let revisions = write.answer.array ?? [write.answer]
    let ours = answer.array ?? [answer]
    let isEqual =
      response.status == write.status
      && zip(revisions, ours).allSatisfy { recorded, ours in
        guard let revision = recorded["rev"].string else { return true }
        return comparison.tokens.match(revision, ours["rev"].string ?? "")
      }
    if !isEqual { report.problems.append("write \(method) \(target): \(response.status) \(answer)") }
  }

  // MARK: Feeds

  /// Waits until the open feeds have brought what the recorded ones had brought by that time.
  private func awaitFeeds(until time: Double) throws {
    for feed in feeds.values {
      let recorded = feed.exchange.pieces?.filter { $0.time <= time }.map(\.text).joined() ?? ""
      let wanted = Self.rows(Array(recorded.utf8))
      wait { feed.response.hasEnded || Self.rows(feed.response.arrived) >= wanted }
    }
    // One that is still running would take the time that comes for that of its last sign of life, and two commits for one.
    wait { client.service.watches.isCurrent }
  }

  /// Waits until the server's own replications have copied all that there is.
  private func awaitReplications() throws {
    guard case .own = replicator else { return }
    let headers = [("Authorization", "Basic YWRtaW46c2VjcmV0")]
    func ask(_ target: String) -> JSONValue {
      (try? client.ask("GET", target, headers: headers, user: SessionStart.admin).json()) ?? .null
    }
    wait {
      let tasks = ask("/_active_tasks").array ?? []
      return JSONValue(tasks.count) == ask("/_scheduler/jobs")["total_rows"]
        && tasks.allSatisfy { $0["process_status"] == "waiting" && $0["changes_pending"] == 0 }
    }
  }

  /// The number of changes in a feed's text.
  private static func rows(_ text: [UInt8]) -> Int { text.ranges(of: Array("\"changes\":[".utf8)).count }

  private func end(_ exchange: RecordedExchange) throws {
    guard let feed = feeds.removeValue(forKey: exchange.number) else { return }
    if exchange.ended == "client_closed" {
      wait { exchange.answerBody.isEmpty || !feed.response.arrived.isEmpty }
      feed.response.cancel()
    } else {
      wait { feed.response.hasEnded }
      if !feed.response.hasEnded {
        report.problems.append("[\(exchange.number)] \(exchange.method) \(exchange.target) doesn't end")
        feed.response.cancel()
      }
    }
    compare(exchange, feed.response, feed.response.arrived)
  }

  /// Waits for what other threads do, a minute at most: machines may be busy.
  private func wait(_ condition: () -> Bool) {
    let deadline = Date(timeIntervalSinceNow: 60)
    while !condition(), Date() < deadline { usleep(200) }
  }
}
