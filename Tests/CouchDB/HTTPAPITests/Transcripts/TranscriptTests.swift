import TestSupport
import Testing
import Touchstone

/// Every recorded exchange of CouchDB's, played against the API: status, content type, headers, members and values are equal.
@Suite(
  .enabled(
    if: recordingFolder != nil, "TOUCHSTONE_DATA is not set: there are no recorded exchanges to replay"))
struct TranscriptTests {
  /// Recordings, each with an engine. A short run plays each of them once, on one engine after the other.
  private static func cases(_ names: [String]) -> [(String, EngineName)] {
    let engines = onlyEngines ?? [.sqlite, .lmdb]
    return names.enumerated().flatMap { index, name in
      (isShort ? [engines[index % engines.count]] : engines).map { (name, $0) }
    }
  }

  @Test("recorded sessions are answered as CouchDB answers them", arguments: cases(Recording.names))
  func session(_ name: String, _ engine: EngineName) throws {
    let replay = try TranscriptReplay(try Recording(name), engine)
    try replay.run()
    record(replay.report, name, engine)
  }

  @Test(
    "recorded sessions of CouchDB's replicator end equally with the server's own",
    arguments: cases(Recording.names.filter { $0.hasPrefix("replicator-") }))
  func ownReplication(_ name: String, _ engine: EngineName) throws {
    let replay = try TranscriptReplay(try Recording(name), engine, replicator: .own)
    try replay.run()
    record(replay.report, name, engine)
  }

  private func record(_ report: ReplayReport, _ name: String, _ engine: EngineName) {
    print("\(engine): \(report.summary)")
    for (exchange, difference) in report.unequal {
      Issue.record(
        """
        \(name) [\(exchange.number)] \(exchange.method) \(exchange.target.prefix(200)) (\(exchange.note)): \(difference.place)
          recorded \(difference.recorded)
          ours     \(difference.ours)
        """)
    }
    for problem in report.problems { Issue.record("\(name): \(problem)") }
    for reason in report.needless { Issue.record("\(name): a decision explains nothing any more: \(reason)") }
  }
}
