import Documents
import Fleece
import Storage

// Which commits can change a query's rows. Most sources of a query ask something of each document by itself: `type =
// 'hotel'`. A document that met none of that before a commit, and meets none after it, is in no row of either result.
//
// The documents that meet it are known by their IDs, as of one snapshot; later ones say which documents have changed
// since. A purge leaves no change behind: its ID is told by who observes, and until then stays a member, which only costs
// a run.

/// Tells which changes can matter to a query's rows. For one live query: its runs come one after another.
package final class QueryRelevance: Sendable {
  private struct State {
    /// The documents that could matter by `sequence`; nil when they aren't known.
    var members: Set<ByteString>?
    var sequence: UInt64 = 0
    var unsequenced: UInt64 = 0
    /// There are too many of them.
    var isOff = false
  }

  /// So many members are remembered, and so many changes looked at one by one, at most.
  static let mostMembers = 50_000
  static let mostChanges: UInt64 = 2_000
  private static let id = "\u{1}id"

  /// For each source: all that meet its conditions, and the same of one document, `$id`.
  private let sources: [(all: Query, one: Query)]
  private let state = Lock(State())

  /// Nil for a query to which every change can matter.
  init?(_ query: ResolvedQuery, in source: QuerySource) throws {
    guard let conditions = query.conditionsOfSources else { return nil }
    sources = try conditions.map { name, conditions in
      let meta = Expression.meta(source: SourceName(name), .id)
      let all = Expression.grouped(.and, conditions[...])
      func query(_ condition: Expression) throws -> Query {
        try Query(
          SelectStatement(
            results: [ResultColumn(meta)], source: DataSource("_", as: name), condition: condition),
          in: source)
      }
      return (
        try query(all),
        try query(.binary(.and, .binary(.equal, meta, .parameter(QueryRelevance.id)), all))
      )
    }
  }

  /// Nothing is known any more: the next commit matters.
  package func forget() { state.withLock { $0.members = nil } }

  /// Whether what was changed by a snapshot since the last call can matter. `purged` are documents that were purged.
  package func mayConcern(
    _ snapshot: DocumentSnapshot, purged: [String], _ parameters: [String: JSONValue],
    _ cancellation: QueryCancellation
  ) throws -> Bool {
    var state = state.withLock { $0 }
    if state.isOff { return true }
    let now = try snapshot.lastSequence
    let unsequenced = snapshot.unsequencedCommits
    guard var members = state.members, now >= state.sequence, unsequenced == state.unsequenced,
      now - state.sequence <= QueryRelevance.mostChanges
    else {
      state.members = try collect(snapshot, parameters, cancellation)
      state.sequence = now
      state.unsequenced = unsequenced
      state.isOff = state.members == nil
      self.state.withLock { $0 = state }
      return true
    }
    var concerns = false
    let purged = purged.map { ByteString($0) }
    for id in purged where members.remove(id) != nil { concerns = true }
    var changed: [ByteString] = []
    try snapshot.forEachChange(since: state.sequence) { change in
      changed.append(ByteString(change.documentID))
      return true
    }
    var values = parameters
    for id in changed + purged {
      values[QueryRelevance.id] = .string(id.string)
      let isMember = try sources.contains {
        try !$0.one.run(values, on: snapshot, cancellation: cancellation).isEmpty
      }
      if isMember {
        members.insert(id)
        concerns = true
      } else if members.remove(id) != nil {
        concerns = true
      }
    }
    state.members = members
    state.sequence = now
    self.state.withLock { $0 = state }
    return concerns
  }

  private func collect(
    _ snapshot: DocumentSnapshot, _ parameters: [String: JSONValue], _ cancellation: QueryCancellation
  ) throws -> Set<ByteString>? {
    var members: Set<ByteString> = []
    for source in sources {
      for row in try source.all.run(parameters, on: snapshot, cancellation: cancellation) {
        if let id = row[0].withUTF8({ ByteString($0) }) { members.insert(id) }
      }
      if members.count > QueryRelevance.mostMembers { return nil }
    }
    return members
  }
}

extension ResolvedQuery {
  /// What each source of documents asks of a document by itself, for a row to be of it; those of queries inside too. Nil
  /// when one asks nothing, or rows depend on more than the bodies of the documents that are in them.
  fileprivate var conditionsOfSources: [(name: ByteString, conditions: [Expression])]? {
    guard matches.isEmpty, isTimeless, !readsExpirations else { return nil }
    var found: [(name: ByteString, conditions: [Expression])] = []
    for source in sources {
      guard case .documents(let kind, let on) = source.kind else { continue }
      guard !source.includesDeleted else { return nil }
      // A match that WHERE refuses keeps the row of an outer join without one from being there.
      let all = (kind == .leftOuter ? [] : conditions) + on
      let own = all.filter {
        $0.sources == [source.name]
          && !$0.hasParts { part in
            switch part {
            case .meta(_, let member): member != .id
            case .exists, .match, .rank, .star: true
            default: false
            }
          }
      }
      guard !own.isEmpty else { return nil }
      found.append((source.name, own))
    }
    for subquery in subqueries {
      guard let inner = subquery.conditionsOfSources else { return nil }
      found += inner
    }
    return found
  }

  /// Whether no function says something else each time.
  private var isTimeless: Bool {
    !hasParts { part in
      guard case .call(let call) = part else { return false }
      return call.name.hasPrefix("NOW_") || call.name.hasPrefix("CLOCK_")
    }
  }

  /// Whether rows depend on when documents expire, which changes without a change of the document.
  var readsExpirations: Bool {
    hasParts { part in
      switch part {
      case .meta(_, .expiration), .meta(_, nil): true
      default: false
      }
    } || subqueries.contains(where: \.readsExpirations)
  }

  private func hasParts(_ isSuch: (Expression) -> Bool) -> Bool {
    var all = columns.map(\.expression) + conditions + (groupBy ?? []) + orderBy.map(\.expression)
    all += [having, limit, offset].compactMap { $0 } + aggregates.compactMap(\.argument)
    all += sources.flatMap(\.expressions)
    return all.contains { $0.hasParts(isSuch) }
  }
}

extension Expression {
  /// Whether it, or a part of it, is such a one.
  fileprivate func hasParts(_ isSuch: (Expression) -> Bool) -> Bool {
    if isSuch(self) { return true }
    var found = false
    forEachPart { if !found, $0.hasParts(isSuch) { found = true } }
    return found
  }
}
