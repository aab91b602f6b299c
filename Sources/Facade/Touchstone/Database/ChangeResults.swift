import Documents
import Fleece
import Query

/// A change that a statement is about to make.
package struct StatementChange {
  /// The document's ID.
  package let id: String
  /// The live document that is there now.
  package let stored: Document?
  /// The new body. Nil for a deletion.
  package let body: JSONValue?

  /// Whether the new revision is a tombstone: a body can say so too (docs/documents.md).
  package var deletes: Bool { body == nil || body?["_deleted"] == true }
}

/// What a statement has changed (`Database.execute`).
public struct ChangeResults: Sendable {
  /// What was done with a document.
  public enum Kind: String, Sendable {
    case inserted, updated, deleted
  }

  /// A document that was changed.
  public struct Document: Sendable, Hashable {
    /// The document's ID.
    public let id: String
    /// What was done with it.
    public let kind: Kind
  }

  /// What was done with an index.
  public enum IndexKind: String, Sendable {
    case created, dropped, unchanged
  }

  /// An index that a statement named.
  public struct Index: Sendable, Hashable {
    /// The index's name. `#primary` for the primary index.
    public let name: String
    /// What was done with it.
    public let kind: IndexKind
  }

  /// The changed documents, in the order of the changes.
  public internal(set) var documents: [Document] = []
  /// The indexes of CREATE INDEX, DROP INDEX and BUILD INDEX. Empty for other statements.
  public internal(set) var indexes: [Index] = []
  /// The names of the columns of RETURNING. Empty without the clause.
  public internal(set) var columnNames: [String] = []
  /// The rows of RETURNING, in the order of the changes.
  public internal(set) var rows: [QueryRow] = []
  /// What the rows and the list of documents count towards, until they go.
  var memory: StatementMemory?
}
