import Fleece

/// A conflict between the current revision and an incoming revision that doesn't descend from it.
public struct Conflict: Sendable {
  /// The document's ID.
  public let documentID: String
  /// The current local revision. It is a tombstone if the document was deleted locally.
  public let local: Revision
  /// The incoming revision. It is a tombstone if the document was deleted in the other database.
  public let remote: Revision
  /// The newest known revision that is in both histories, or nil. It has its body if that is still stored.
  public let commonAncestor: Revision?
}

/// The resolution of a conflict. The incoming branch always continues. The cases differ in its content.
public enum ConflictResolution: Sendable {
  /// The local content. It becomes a new revision on top of the incoming one.
  case local
  /// The incoming content, unchanged.
  case remote
  /// Merged content. It becomes a new revision on top of the incoming one.
  case merged(JSONValue)
  /// A tombstone on top of the incoming revision.
  case delete
}

/// Resolves conflicts of incoming revisions (`apply(_:resolvingWith:)`).
///
/// It is called outside the write transaction. When the document has changed before the resolution is
/// written, it is called again with the current state. Its errors are rethrown, and the incoming revision
/// isn't stored.
public protocol ConflictResolver: Sendable {
  /// Returns the resolution of the conflict.
  func resolve(_ conflict: Conflict) throws -> ConflictResolution
}

/// The default resolver of Couchbase Lite 2.x. A deletion wins; if both are deletions, the incoming one wins.
/// Otherwise the higher generation wins, then the higher revision ID, then the incoming revision.
public struct DefaultConflictResolver: ConflictResolver {
  /// Creates the resolver.
  public init() {}

  /// Applies the rules above. The content doesn't matter.
  public func resolve(_ conflict: Conflict) -> ConflictResolution {
    if conflict.remote.isDeleted { return .remote }
    if conflict.local.isDeleted { return .local }
    return conflict.local.id > conflict.remote.id ? .local : .remote
  }
}

/// A resolver that calls a closure.
public struct ClosureConflictResolver: ConflictResolver {
  private let body: @Sendable (Conflict) throws -> ConflictResolution

  /// Creates a resolver that calls `body`.
  public init(_ body: @escaping @Sendable (Conflict) throws -> ConflictResolution) { self.body = body }

  /// Returns the closure's result.
  public func resolve(_ conflict: Conflict) throws -> ConflictResolution { try body(conflict) }
}
