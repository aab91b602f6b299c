/// What came of the replay of a session.
struct ReplayReport {
  let session: String
  /// The exchanges of the recording.
  var exchanges = 0
  /// The statuses, headers, members and values that were compared.
  var compared = 0
  /// Exchanges that weren't sent, and those that need what isn't built, by the reason.
  private(set) var left: [String: Int] = [:]
  private(set) var answered: [String: Int] = [:]
  /// Exchanges answered 304 because our tag still held.
  var stillHolding = 0
  /// The differences that aren't decided.
  private(set) var unequal: [(exchange: RecordedExchange, difference: AnswerDifference)] = []
  /// How many differences each decision has explained, by its place in the table.
  private(set) var decided: [Int: Int] = [:]
  private var comparedExchanges: [RecordedExchange] = []
  /// What went wrong beside the answers.
  var problems: [String] = []

  private let replicator: TranscriptReplay.Replicator

  init(session: String, _ replicator: TranscriptReplay.Replicator) {
    self.session = session
    self.replicator = replicator
  }

  /// The decisions that count.
  private var decisions: [TranscriptTables.Decision] { TranscriptTables.decisions(replicator) }

  mutating func leave(_ exchange: RecordedExchange, _ reason: String) { left[reason, default: 0] += 1 }

  mutating func answer(
    _ exchange: RecordedExchange, _ response: Response, expecting status: Int, _ reason: String
  ) {
    answered[reason, default: 0] += 1
    if response.status != status {
      unequal.append(
        (
          exchange,
          AnswerDifference(
            place: "status, by the table", recorded: "\(status)",
            ours: "\(response.status) \(response.text.prefix(200))")
        ))
    }
  }

  mutating func add(_ differences: [AnswerDifference], _ exchange: RecordedExchange) {
    comparedExchanges.append(exchange)
    for difference in differences {
      if let index = TranscriptTables.decision(session, exchange, difference, replicator) {
        decided[index, default: 0] += 1
      } else {
        unequal.append((exchange, difference))
      }
    }
  }

  /// The decisions about this session that nothing needs any more.
  var needless: [String] {
    decisions.indices.compactMap { index in
      let decision = decisions[index]
      let applies = comparedExchanges.contains {
        $0.status < 300 || !decision.session.isEmpty ? decision.applies(to: $0, in: session) : false
      }
      return applies && !decision.isRare && decided[index] == nil
        ? "\(decision.place): \(decision.reason)" : nil
    }
  }

  /// A line about the session.
  var summary: String {
    let skipped = left.sorted { $0.key < $1.key }.map { "\($0.value) not sent (\($0.key))" }
    let waiting = answered.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    var parts = ["\(exchanges) exchanges", "\(compared) members compared", "\(unequal.count) unequal"]
    let decisions = decided.values.reduce(0, +)
    if decisions > 0 { parts.append("\(decisions) otherwise by decision") }
    if stillHolding > 0 { parts.append("\(stillHolding) answered 304 by a tag of ours that still held") }
    return "\(session): " + (parts + skipped + waiting).joined(separator: ", ")
  }
}
