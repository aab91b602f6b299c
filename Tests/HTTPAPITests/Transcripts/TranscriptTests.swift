import TestSupport
import Testing
import Touchstone

/// Every recorded exchange of CouchDB's, played against the API: status, content type, headers, members and values are equal.
@Suite(
  .enabled(
    if: recordingFolder != nil, "TOUCHSTONE_DATA is not set: there are no recorded exchanges to replay"))
struct TranscriptTests {
  @Test(
    "recorded sessions are answered as CouchDB answers them", arguments: Recording.names,
    [EngineName.sqlite, .lmdb])
  func session(_ name: String, _ engine: EngineName) throws {
    let replay = try TranscriptReplay(try Recording(name), engine)
    try replay.run()
    guard let open = Self.open[name] else { return record(replay.report, name, engine) }
    withKnownIssue(Comment(rawValue: open), isIntermittent: true) { record(replay.report, name, engine) }
  }

  /// Sessions with answers that aren't CouchDB's yet, and what is missing.
  private static let open = [
    "api-03-bulk": "_purged_infos isn't listed",
    "api-05-attachments": "the length of an attachment that came with gzip; revpos in a copy",
    "api-07-changes-feeds": "the wait of a replay ends too early on a busy machine",
    "replicator-01-pull": "attachments in multipart answers aren't compressed; a checkpoint too few",
    "replicator-02-pull-without-bulk-get": "attachments in multipart answers aren't compressed",
    "replicator-03-push": "the last sequence after a push",
    "replicator-04-both-ends": "checkpoints and sequences after both ends have changed",
    "replicator-05-filtered": "a sequence of the recorded server that no answer before has shown",
    "replicator-06-continuous": "the order of writes beside a continuous feed",
    "replicator-08-errors-and-fallbacks": "checkpoints after faults",
  ]

  @Test(
    "recorded sessions of CouchDB's replicator end equally with the server's own",
    arguments: Recording.names.filter { $0.hasPrefix("replicator-") }, [EngineName.sqlite, .lmdb])
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
