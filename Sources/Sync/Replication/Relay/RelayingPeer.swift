import Fleece

/// A peer that can be a side of a relay: a replication between two databases of which neither is here.
///
/// Both sides are of one kind. Revisions go from one to the other as they are, and nothing of them is stored
/// here.
package protocol RelayingPeer: Peer {
  /// Reads a local document, with its `_rev`; nil if there is none.
  func localDocument(_ name: String, _ done: @escaping Completion<JSONObject?>)
  /// Writes a local document in the place of the stored one. Answers an error with `isOfAnotherDatabase` if
  /// the database was replaced since the connection began.
  func saveLocalDocument(_ name: String, _ body: JSONObject, _ done: @escaping Completion<Void>)
  /// Sends to another peer what a request asks of this one, until the connection ends; with a one-shot
  /// request until the sink was told that all changes were offered. `done` has the error of a request that
  /// this peer refuses.
  func relay(
    _ request: PullRequest, to target: any Peer, into sink: any RelaySink, _ done: @escaping Completion<Void>)
}

/// Hears what a relay does. Calls may come on any thread. Those of `offered` and `caughtUp` come in the order
/// of the changes.
package protocol RelaySink: AnyObject, Sendable {
  /// The source has these changes. Each of them gets an outcome later.
  func offered(_ changes: [OfferedChange])
  func settled(_ outcomes: [RelayOutcome])
  /// All changes so far were offered, up to this sequence if it is known.
  func caughtUp(at sequence: RemoteSequence?)
}

/// What has become of a change that was offered.
package struct RelayOutcome: Sendable {
  package enum Result: Sendable {
    /// The target has the revision.
    case known
    /// The source doesn't give it: it isn't there any more, or may not be read.
    case unavailable
    /// The target has stored it.
    case written
    /// It wasn't stored. `isUndone`: the next connection tries it again.
    case failed(ReplicationError, isUndone: Bool)
  }

  /// The document, and the revision that was offered.
  package let id: String
  package let offered: String
  /// The revision that has come for it: that one, or one that follows it.
  package var revision: String
  package var isDeleted = false
  package let result: Result

  package init(_ id: String, _ offered: String, _ result: Result) {
    (self.id, self.offered, self.result) = (id, offered, result)
    revision = offered
  }

  /// The outcome of a revision that has come.
  package init(_ id: String, _ offered: String, revision: String, isDeleted: Bool, _ result: Result) {
    self.init(id, offered, result)
    self.revision = revision
    self.isDeleted = isDeleted
  }
}
