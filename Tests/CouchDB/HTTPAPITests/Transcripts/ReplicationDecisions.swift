/// Where the answers of this server's own replications aren't those of CouchDB's, with the reasons.
enum ReplicationDecisions {
  /// Members that tell times, processes, and what only a source over HTTP has.
  static let kindsOnly: Set<String> = [
    "start_time", "end_time", "timestamp", "last_updated", "_replication_state_time", "started_on",
    "updated_on", "pid", "node", "bulk_get_docs", "bulk_get_attempts",
  ]

  /// Requests to replicate that go wrong because the recorder answered in the place of the source or the target.
  static let left: [String: Set<Int>] = [
    "replicator-05-filtered": [111],
    "replicator-08-errors-and-fallbacks": [223, 245, 255, 267, 279, 293],
  ]

  private static let order = "Several requests wrote at once."

  static let all: [TranscriptTables.Decision] = [
    .init(
      session: "replicator-01-pull", numbers: [49], place: "body.last_seq",
      reason: "Sequences of the target follow the order of writes.", isRare: true),
    .init(session: "replicator-01-pull", numbers: [49], place: "body.results.order", reason: order),
    .init(
      session: "replicator-02-pull-without-bulk-get", numbers: [76], place: "body.results.order",
      reason: order),
    .init(
      session: "replicator-03-push", numbers: [55], place: "body.last_seq",
      reason: "Sequences of the target follow the order of writes.", isRare: true),
    .init(session: "replicator-03-push", numbers: [55], place: "body.results.order", reason: order),
    .init(
      session: "replicator-03-push", numbers: [55], place: "body.results[43].seq",
      reason: "Sequences of the target follow the order of writes.", isRare: true),
    .init(
      session: "replicator-01-pull", numbers: [49], place: "body.results[43].seq",
      reason: "Sequences of the target follow the order of writes.", isRare: true),
    .init(
      session: "replicator-06-continuous", numbers: [79, 81], place: "body.results.order", reason: order),
    .init(
      session: "replicator-06-continuous", numbers: [80, 82], place: "body.rows[0].doc._rev",
      reason: "How many checkpoints a running replication saves follows the time.", isRare: true),
    .init(
      session: "replicator-06-continuous", numbers: [80, 82], place: "body.rows[0].value.rev",
      reason: "How many checkpoints a running replication saves follows the time.", isRare: true),
    .init(
      session: "replicator-04-both-ends", numbers: [104, 106], place: "body.results[4].doc",
      reason: "Which of two new revisions wins follows from their IDs."),
    .init(
      session: "replicator-05-filtered", numbers: [154], place: "body.reason",
      reason: "The text shows the terms of another language."),
    .init(
      session: "replicator-07-replicator-database", numbers: [28], place: "body[0].checkpoint_interval",
      reason: "Checkpoints are saved more often."),
    .init(
      session: "replicator-07-replicator-database", numbers: [28], place: "body[0].database",
      reason: "There are no shards."),
    .init(
      session: "replicator-07-replicator-database", numbers: [28], place: "body[0].source_seq",
      reason: "It is known before anything is replicated."),
    .init(
      session: "replicator-07-replicator-database", numbers: [36], place: "body.reason",
      reason: "Databases of the server may be named."),
  ]
}
