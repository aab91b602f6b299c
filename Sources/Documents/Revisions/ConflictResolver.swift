import Fleece

/// A revision from elsewhere that doesn't descend from the current one.
public struct Conflict: Sendable {
  /// The document.
  public let documentID: String
  /// The current revision here; a tombstone when the document was deleted here.
  public let local: Revision
  /// The revision that comes in; a tombstone when the document was deleted there.
  public let remote: Revision
  /// The newest revision that is known to be in both histories, with its body while that is still here.
  public let commonAncestor: Revision?
}

/// What is to become of a conflict. The incoming branch always goes on; what differs is its content.
public enum ConflictResolution: Sendable {
  /// The content here: it becomes a new revision on top of the incoming one.
  case local
  /// The incoming content, as it is.
  case remote
  /// Something made of both: it becomes a new revision on top of the incoming one.
  case merged(JSONValue)
  /// A tombstone on top of the incoming revision.
  case delete
}

/// Decides conflicts as they come in (`apply(_:resolvingWith:)`).
///
/// It is called outside the write transaction, and again with what is stored by then when the document has been
/// changed meanwhile. What it throws is rethrown, and the incoming revision isn't stored.
public protocol ConflictResolver: Sendable {
  /// What is to become of the conflict.
  func resolve(_ conflict: Conflict) throws -> ConflictResolution
}

/// The resolver of Couchbase Lite 2.x: a deletion wins, the incoming one before the local one; then the higher
/// generation; then the higher revision ID, the incoming one when both are the same.
public struct DefaultConflictResolver: ConflictResolver {
  /// The resolver.
  public init() {}

  /// By the rules above, whatever the content.
  public func resolve(_ conflict: Conflict) -> ConflictResolution {
    if conflict.remote.isDeleted { return .remote }
    if conflict.local.isDeleted { return .local }
    return conflict.local.id > conflict.remote.id ? .local : .remote
  }
}

/// A resolver made of a closure.
public struct ClosureConflictResolver: ConflictResolver {
  private let body: @Sendable (Conflict) throws -> ConflictResolution

  /// A resolver that asks `body`.
  public init(_ body: @escaping @Sendable (Conflict) throws -> ConflictResolution) { self.body = body }

  /// What the closure says.
  public func resolve(_ conflict: Conflict) throws -> ConflictResolution { try body(conflict) }
}
