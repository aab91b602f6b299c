/// What isn't played, what waits for other parts of the server, and where this server answers otherwise than CouchDB, with the reasons.
enum TranscriptTables {
  /// What is done with an exchange.
  enum Fate {
    /// It is sent, and the answer is compared.
    case compared
    /// It is sent, and answered with this status.
    case answered(Int, String)
    /// It isn't sent.
    case left(String)
  }

  static func fate(of exchange: RecordedExchange, in session: String) -> Fate {
    if exchange.isAnsweredByProxy { return .left("the recorder answered") }
    if isRefusedByListener(exchange) { return .left("the listener refuses the login") }
    if let (status, reason) = later(exchange) { return .answered(status, reason) }
    return .compared
  }

  /// Logins are checked before a request comes to the API.
  private static func isRefusedByListener(_ exchange: RecordedExchange) -> Bool {
    guard exchange.path != "/_session" else { return false }
    if exchange.status == 401, SessionStart.user(of: exchange) == nil { return true }
    return exchange.note == "malformed basic auth" || exchange.note.hasPrefix("lockout")
  }

  /// What isn't there yet, or never will be: docs/http.md lists it with the status.
  private static func later(_ exchange: RecordedExchange) -> (Int, String)? {
    let segments = exchange.segments
    switch segments.first {
    case "_replicate", "_scheduler", "_replicator": return (501, "for replications by the server")
    case "_users": return (501, "for users")
    case "_node": return (501, "of a node")
    default: break
    }
    guard segments.count > 1 else { return nil }
    switch segments[1] {
    case "_security": return (501, "for security objects")
    case "_find", "_index", "_explain": return (501, "for Mango")
    case "_shards", "_sync_shards": return (501, "of shards")
    case "_design"
    where segments.count > 3 && ["_show", "_list", "_update", "_rewrite"].contains(segments[3]):
      return (501, "for functions that make answers")
    default: return nil
    }
  }

  // MARK: Decisions

  /// A difference that is wanted.
  struct Decision {
    /// The session, and the numbers of the exchanges; all of it if there are none.
    let session: String
    var numbers: [Int] = []
    /// The start of the place.
    let place: String
    let reason: String
  }

  static let decisions: [Decision] = []

  /// The index of the decision that explains a difference.
  static func decision(_ session: String, _ exchange: RecordedExchange, _ difference: AnswerDifference)
    -> Int?
  {
    decisions.firstIndex { decision in
      decision.session == session && (decision.numbers.isEmpty || decision.numbers.contains(exchange.number))
        && difference.place.hasPrefix(decision.place)
    }
  }
}
