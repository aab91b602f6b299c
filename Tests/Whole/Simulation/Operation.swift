// What is done in a simulation, as values: they go to worker processes as lines of JSON, and a failing
// simulation is printed as such lines.

/// What a simulated document holds. Each member is seen by another part of the database.
package struct Content: Codable, Equatable, Sendable {
  /// For value indexes.
  package var number: Int
  /// For full-text indexes: words that no analysis changes.
  package var words: [String]
  /// What its blob holds, if it has one.
  package var blob: String?
  /// The bytes of padding that make it large.
  package var padding: Int

  package init(number: Int, words: [String], blob: String?, padding: Int) {
    self.number = number
    self.words = words
    self.blob = blob
    self.padding = padding
  }

  /// What a design document shows: it has none of these members.
  static let design = Content(number: -1, words: [], blob: nil, padding: -1)
}

/// One call of the public interface.
package indirect enum Operation: Codable, Equatable, Sendable {
  /// On top of the stored document, whatever that is.
  case save(id: String, Content)
  /// On top of a revision: refused if that isn't the current one.
  case saveOnTop(id: String, revision: String?, Content)
  /// All in one batch.
  case saveAll([String: Content])
  case delete(id: String)
  case purge(id: String)
  /// A revision that was made elsewhere, with its history.
  case apply(id: String, history: [String], isDeleted: Bool, Content)
  /// Ends all branches but the current one.
  case resolve(id: String, revision: String)
  /// Adds one to the number of a document as often as that, in as many transactions.
  case increment(id: String, times: Int)
  /// The time is a number of days from a date in the future, so that nothing expires by itself.
  case setExpiration(id: String, day: Int?)
  case purgeExpired(day: Int)
  case saveLocal(id: String, Int)
  case createIndex
  case createFullTextIndex
  case deleteIndex(String)
  /// An index of selectors: a design document.
  case createFindIndex
  case compact
  /// By a statement: adds to the number of each document whose number lies in a range.
  case updateWhere(from: Int, through: Int, adding: Int)
  /// By a statement: deletes the documents whose number lies in a range.
  case deleteWhere(from: Int, through: Int)
  /// The same, undone at its end.
  case tryDeleteWhere(from: Int, through: Int)
  /// By a statement: makes a document, or replaces one if it may.
  case insert(id: String, replaces: Bool, number: Int)

  case document(id: String)
  case leaves(id: String)
  case local(id: String)
  /// All documents with their current revisions.
  case all
  /// The IDs of all documents, in the order of their last changes.
  case changes
  /// The documents whose number lies in a range, by a query.
  case query(from: Int, through: Int)
  /// What queries sort, group, number and join, with rows in temporary files from so many bytes on.
  case spilled(from: Int)
  /// The number of documents and the sum of their numbers, by a query.
  case total
  /// The same two answers, by a view that maps each document to its number.
  case viewRows(from: Int, through: Int)
  case viewTotal
  /// The same documents, by a selector of CouchDB: with the indexes that there are, and without.
  case find(from: Int, through: Int)
  /// The documents that have a word.
  case match(String)
  /// The faults that the database's own check finds.
  case check
  /// An operation by HTTP requests to a server over the database in the same process.
  case overHTTP(Operation)
  /// What a database does as one of several replicas.
  case replica(ReplicaOperation)
}

/// What came of a call.
package enum Answer: Codable, Equatable, Sendable {
  case done
  /// A revision was saved.
  case saved([Saved])
  case document(Current?)
  case documents([String: Current])
  case leaves([Leaf])
  case names([String])
  case numbers([Int])
  case local(Int?)
  case count(Int)
  case replica(ReplicaAnswer)
  /// The call threw an error with this code.
  case refused(code: String, message: String)

  /// A revision that was saved.
  package struct Saved: Codable, Equatable, Sendable {
    package let id: String
    package let revision: String
    package let sequence: UInt64
  }

  /// The current revision of a document.
  package struct Current: Codable, Equatable, Sendable {
    package let revision: String
    package let isDeleted: Bool
    package let isConflicted: Bool
    /// Nil for a tombstone.
    package let content: Content?
  }
}

/// A leaf of a revision tree.
package struct Leaf: Codable, Equatable, Sendable {
  package let revision: String
  package let isDeleted: Bool
  package let content: Content?
}
