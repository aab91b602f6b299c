import Documents
import Fleece
import Storage

// Tells which commits can change the rows of a query. Most sources of a query have conditions that depend on
// a single document, such as `type = 'hotel'`. A document that met none of them before a commit, and meets
// none after it, is in no row of either result.
//
// The IDs of the documents that meet the conditions, the members, are collected on one snapshot. Later
// snapshots list the documents that changed since. A purge isn't in that list. The observer reports purged
// IDs. Until then a purged document stays a member, which only costs an extra run.

/// Tells which changes can affect the rows of a query. It belongs to one live query, whose runs come one
/// after another.
package final class QueryRelevance: Sendable {
  private struct State {
    /// The documents that could affect the rows at `sequence`. Nil when they aren't known.
    var members: Set<ByteString>?
    var sequence: UInt64 = 0
    var unsequenced: UInt64 = 0
    /// Set when there are too many members. Then every commit counts.
    var isOff = false
  }

  /// The maximum number of members that are remembered, and of changes that are checked one by one.
  static let mostMembers = 50_000
  static let mostChanges: UInt64 = 2_000
  private static let id = "\u{1}id"

  /// Two queries for each source: all documents that meet its conditions, and the same for one document,
  /// `$id`.
  private let sources: [(all: Query, one: Query)]
  private let state = Lock(State())

  /// Nil when every change can affect the query.
  init?(_ query: ResolvedQuery, in source: QuerySource) throws {
    guard let conditions = query.conditionsOfSources else { return nil }
    sources = try conditions.map { name, conditions in
      let meta = QueryExpression.meta(source: SourceName(name), .id)
      let all = QueryExpression.grouped(.and, conditions[...])
      func query(_ condition: QueryExpression) throws -> Query {
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

  /// Forgets the members. The next call of `mayConcern` returns true.
  package func forget() { state.withLock { $0.members = nil } }

  /// Whether the changes since the last call, up to this snapshot, can affect the rows. `purged` are the IDs
  /// of purged documents.
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
  /// The conditions that each source puts on a single document, including the sources of subqueries. A row
  /// needs documents that meet them. Nil when a source has no such condition, or when rows depend on more
  /// than the bodies of their documents.
  fileprivate var conditionsOfSources: [(name: ByteString, conditions: [QueryExpression])]? {
    guard matches.isEmpty, isTimeless, !readsExpirations else { return nil }
    var found: [(name: ByteString, conditions: [QueryExpression])] = []
    for source in sources {
      guard !source.joinKind.keepsUnmatched else { return nil }
      guard case .documents(let kind, let on) = source.kind else { continue }
      guard !source.includesDeleted else { return nil }
      // In a left outer join, WHERE can't be used: even a match that WHERE refuses prevents the row without a
      // match.
      let all = (kind == .leftOuter ? [] : conditions) + on
      let own = all.filter {
        $0.sources == [source.name]
          && !$0.hasParts { part in
            switch part {
            case .meta(_, let member): member != .id
            case .exists, .match, .rank, .star: true
            case .parameter(let name): InternalName.isCapture(name)
            case .call(let call): InternalName.isCall(call.name)
            default: false
            }
          }
      }
      guard !own.isEmpty else { return nil }
      found.append((source.name, own))
    }
    for subquery in subqueries.flatMap(\.queries) {
      guard let inner = subquery.conditionsOfSources else { return nil }
      found += inner
    }
    return found
  }

  /// Whether another run on the same documents has the same result: the query calls no function that depends on
  /// the current time or on chance.
  private var isTimeless: Bool { !hasParts { $0.callVolatility >= .run } }

  /// Whether rows depend on expiration times. These can change without a change of the document.
  var readsExpirations: Bool {
    hasParts { part in
      switch part {
      case .meta(_, .expiration), .meta(_, nil): true
      default: false
      }
    } || subqueries.contains { $0.queries.contains(where: \.readsExpirations) }
  }

  private func hasParts(_ isSuch: (QueryExpression) -> Bool) -> Bool {
    let all =
      rowExpressions + conditions + [limit, offset].compactMap { $0 } + sources.flatMap(\.expressions)
    return all.contains { $0.hasParts(isSuch) }
  }
}
