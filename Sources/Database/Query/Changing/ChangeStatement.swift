// The syntax tree of statements that change documents. The grammar is in docs/query-changes.md.

import Storage

/// A statement that changes documents: UPDATE, DELETE, INSERT, UPSERT or MERGE.
package struct ChangeStatement: Hashable, Sendable {
  /// What is done with documents.
  package enum Action: Hashable, Sendable {
    case update(Assignments)
    case delete
    case insert(InsertedDocuments, replaces: Bool)
    case merge(MergeActions)
  }

  /// The documents of the database, with an alias and USE KEYS.
  package var target: DataSource
  package var action: Action
  /// The condition of WHERE.
  package var condition: QueryExpression?
  package var limit: QueryExpression?
  package var offset: QueryExpression?
  /// The results of RETURNING. Empty without the clause.
  package var returning: [ResultColumn] = []
  /// Whether a row of RETURNING is the value of its only result.
  package var isRaw = false

  /// The word that the statement begins with.
  package var word: String {
    switch action {
    case .update: "UPDATE"
    case .delete: "DELETE"
    case .insert(_, let replaces): replaces ? "UPSERT" : "INSERT"
    case .merge: "MERGE"
    }
  }
}

/// The terms of SET and UNSET.
package struct Assignments: Hashable, Sendable {
  package var set: [SetTerm] = []
  package var unset: [UnsetTerm] = []
}

/// `path = value FOR …`.
package struct SetTerm: Hashable, Sendable {
  package var path: PropertyReference
  package var value: QueryExpression
  package var loop: AssignmentLoop?
}

/// `path FOR …` of UNSET.
package struct UnsetTerm: Hashable, Sendable {
  package var path: PropertyReference
  package var loop: AssignmentLoop?
}

/// `FOR variable IN path FOR … WHEN condition END`: the items of an array that an assignment changes. The path
/// of each further array begins with the variable before it.
package struct AssignmentLoop: Hashable, Sendable {
  package struct Variable: Hashable, Sendable {
    package var name: ByteString
    package var path: PropertyReference
  }
  package var variables: [Variable]
  package var condition: QueryExpression?
}

/// The documents of INSERT and UPSERT.
package enum InsertedDocuments: Hashable, Sendable {
  /// `VALUES (key, value), …`.
  case values([[QueryExpression]])
  /// `(KEY key, VALUE value) SELECT …`. Without a value, it is the row.
  case rows(SelectStatement, key: QueryExpression, value: QueryExpression?)
}

/// The source and the actions of MERGE.
package struct MergeActions: Hashable, Sendable {
  package struct Update: Hashable, Sendable {
    package var assignments: Assignments
    package var condition: QueryExpression?
  }
  package struct Delete: Hashable, Sendable {
    package var condition: QueryExpression?
  }
  package struct Insert: Hashable, Sendable {
    package var key: QueryExpression
    package var value: QueryExpression?
    package var condition: QueryExpression?
  }

  package var source: DataSource
  /// The condition of ON.
  package var on: QueryExpression
  package var update: Update?
  package var delete: Delete?
  package var insert: Insert?
}
