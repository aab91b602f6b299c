/// Where a replay may differ from the recording, and why; and which sessions aren't replayed.
enum ReplayExceptions {
  enum Side: Sendable { case client, server }

  /// A difference that is decided.
  struct Decided: Sendable {
    let side: Side
    /// Beginnings of the names of sessions.
    let sessions: [String]
    /// The kinds of differences.
    let kinds: Set<String>
    /// A part of the detail; empty: any.
    let detail: String
    let reason: String
    /// Whether it depends on when a connection is cut.
    let isChance: Bool

    init(
      _ side: Side, _ sessions: [String], _ kinds: Set<String>, _ detail: String = "", isChance: Bool = false,
      because reason: String
    ) {
      self.isChance = isChance
      self.side = side
      self.sessions = sessions
      self.kinds = kinds
      self.detail = detail
      self.reason = reason
    }

    func covers(_ name: String, _ side: Side, _ difference: ReplayNotes.Difference) -> Bool {
      self.side == side && kinds.contains(difference.kind) && sessions.contains { name.hasPrefix($0) }
        && (detail.isEmpty || difference.detail.contains(detail))
    }
  }

  private static let all = ["v2/", "v3/", "v3.2/", "v3.2-forced-v2/", "negotiation/"]

  static let decided: [Decided] = [
    // Our client.
    Decided(
      .client, all, ["subChanges.upTo"],
      because: "databases of this library tell each other which sequence was reached"),
    Decided(
      .client, all, ["further", "end.further"],
      because:
        "a one-shot run looks at local changes once more at its end: those that it has pulled count as pushed"
    ),
    Decided(
      .client,
      [
        "v2/bidi-1", "v3.2/bidi-1", "v2/conflict-2", "v3/conflict-2", "v3.2/conflict-2", "v2/conflict-5",
        "v3/conflict-5", "v3.2/conflict-5",
      ],
      [
        "end.current", "end.tree", "end.mark", "end.extra", "proposed", "rev", "not-echoed", "not-proposed",
        "not-sent", "rev.sequence", "rev.history", "checkpoint.remote", "end.checkpoint",
      ],
      because:
        "our replicator resolves a conflict at once, and pushes the result; the recording program left it"),
    Decided(
      .client, ["v2/conflict-1-push-409"], ["proposed", "rev", "end.mark"],
      because:
        "a server that says no without its revision may have lost the document: it is asked once without a parent"
    ),
    Decided(
      .client, ["v2/skip-deleted", "v3/skip-deleted"], ["subChanges.activeOnly"],
      because: "the option skipDeleted isn't offered; the database isn't empty, so tombstones are pulled"),
    Decided(
      .client, ["v2/deltas-1", "v3/deltas-1"], ["delta", "delta.form"], "d-all-new",
      because: "a delta that is longer than the body isn't sent"),
    Decided(
      .client, ["v3/history-1"], ["rev.history"], "depth100-60",
      because: "maxHistory counts the ancestors; LiteCore of 2026 counts the revision too"),
    Decided(
      .client, ["v2/blobs-4", "v3/blobs-4"], ["end.body"],
      because: "the recorded bodies are those of the server, with the attachments that were added for it"),
    Decided(
      .client, ["v2/continuous", "v3/continuous"],
      [
        "proposed", "not-proposed", "rev", "not-sent", "rev.Profile", "rev.body", "rev.error", "rev.history",
        "rev.noconflicts", "rev.sequence", "not-echoed", "wanted",
      ],
      "live_burst",
      because:
        "the replay makes each edit of a burst when the one before is replicated; the recorded client passed some over"
    ),
    Decided(
      .client, ["v2/server-restart"],
      [
        "activity", "checkpoint.local", "checkpoint.remote", "unrecorded", "rev", "wanted", "end.current",
        "end.checkpoint",
      ],
      because: "2.8.7 didn't connect again after its server was killed; our client does, and is stopped"),
    Decided(
      .client, ["v3/server-restart"],
      ["subChanges.since", "wanted", "unrecorded", "not-sent", "not-proposed", "proposed"], isChance: true,
      because:
        "when the server is killed in the middle, more or fewer revisions were stored than in the recording"),
    Decided(
      .client,
      [
        "negotiation/new-client-old-server", "negotiation/client-2026-server-3.2",
        "negotiation/old-client-new-server",
      ],
      [
        "proposed", "rev", "end.mark", "end.current", "end.extra", "end.checkpoint", "error", "activity",
        "unrecorded", "not-proposed", "proposeChanges.collection", "subChanges.collection", "end.tree",
      ],
      because: "our client goes over to the other form of requests where the recorded client gave up"),

    // Our passive side.
    Decided(
      .server, all, ["reply.replaces"],
      because: "databases of this library tell each other that a conflict was resolved"),
    Decided(
      .server, ["v2/", "v3.2/", "v3.2-forced-v2/", "negotiation/"], ["reply.sendReplacementRevs"],
      because: "only servers of 2026 say it, and older clients ignore it"),
    Decided(
      .server, all, ["echo"],
      because: "revisions that a client has pushed are offered to it like all others, as 2.8.7 does"),
    Decided(
      .server, ["v2/pull-edited", "v3/pull-edited", "v3.2/pull-edited"], ["rev"], "r03",
      because: "bodies of replaced revisions are kept, so the revision that was asked for is sent"),
    Decided(
      .server, ["v2/continuous", "v3/continuous"],
      ["offered", "not-offered", "rev", "rev.sequence", "rev.history", "end.checkpoint"],
      because:
        "each edit of a burst is offered; LiteCore passed some over. Edits that cross pushes get other sequences"
    ),
    Decided(
      .server, ["v2/blobs-4", "v3/blobs-4"], ["reply.blobs", "end.body"],
      because: "our passive side always knows blobs, and takes stand-ins out"),
    Decided(
      .server, ["v2/deltas-3", "v3/deltas-3"], ["reply.deltas"],
      because: "our passive side always takes deltas"),
    Decided(
      .server, ["v2/server-restart", "v3/server-restart"], ["error", "reply.body", "rev"],
      because: "the recorded server was killed before it had stored or sent what came last"),
    Decided(
      .server, ["negotiation/"],
      ["error", "offered", "end.current", "end.extra", "reply.body", "rev", "statuses"],
      because: "our passive side serves both forms of requests, where the recorded servers refused one"),
  ]

  /// Why a session isn't replayed on a side; nil if it is.
  static func reason(_ session: TranscriptSession, _ side: Side) -> String? {
    let name = session.name
    if name.hasPrefix("v4/") { return "version vectors" }
    if name.contains("/collections") { return "named collections" }
    if name.contains("/http-no-protocol") { return "the server is a stand-in that answers nothing" }
    if session.messages.isEmpty { return "it has no messages" }
    if name.contains("/many-") { return "the revisions of 3,000 documents aren't recorded" }
    if side == .client, name.hasSuffix("/filter-pull") {
      return "a replicator has no option for named filters"
    }
    return nil
  }
}
