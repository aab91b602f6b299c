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
    var detail = ""
    let reason: String

    func covers(_ name: String, _ side: Side, _ difference: ReplayNotes.Difference) -> Bool {
      self.side == side && kinds.contains(difference.kind) && sessions.contains { name.hasPrefix($0) }
        && (detail.isEmpty || difference.detail.contains(detail))
    }
  }

  static let decided: [Decided] = []

  /// Why a session isn't replayed on a side; nil if it is.
  static func reason(_ session: TranscriptSession, _ side: Side) -> String? {
    let name = session.name
    if name.hasPrefix("v4/") { return "version vectors" }
    if name.contains("/collections") { return "named collections" }
    if name.contains("/http-no-protocol") { return "the server is a stand-in that answers nothing" }
    if session.messages.isEmpty { return "it has no messages" }
    if name.contains("/many-") { return "the revisions of 3,000 documents aren't recorded" }
    if side == .client, name.hasSuffix("/filter-pull") { return "a replicator has no option for named filters" }
    return nil
  }
}
