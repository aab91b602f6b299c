// The syntax tree of statements about indexes. The grammar is in docs/query-changes.md.

import Storage

/// A statement about indexes.
package struct IndexStatement: Hashable, Sendable {
  /// What is done.
  package enum Action: Hashable, Sendable {
    /// `CREATE INDEX name`. Without a definition it is a primary index, which each database has.
    case create(ByteString?, ValueIndexDefinition?, unlessExists: Bool)
    /// `DROP INDEX name`. Without a name it is the primary index.
    case drop(ByteString?, ifExists: Bool)
    /// `BUILD INDEX`. Indexes are built when they are created.
    case build([ByteString])
  }

  package var action: Action
  /// The name of the database after ON.
  package var source: SourceName

  /// Checks that the statement is about this database.
  ///
  /// - Throws: `unknownName` for another name after ON.
  package func check(databaseName: String, in text: String) throws(QueryError) {
    let known: [ByteString] = ["_", "_default", ByteString(databaseName)]
    guard !known.contains(source.name) else { return }
    throw QueryError(
      .unknownName, "there is no \"\(source.name)\"; the documents of the database are _ or \(databaseName)",
      at: source.position, in: text)
  }
}

extension Printer {
  mutating func put(_ statement: IndexStatement) {
    switch statement.action {
    case .create(let name, let definition, let unlessExists):
      put(definition == nil ? "CREATE PRIMARY INDEX" : "CREATE INDEX")
      put(indexName: name)
      put((unlessExists ? " IF NOT EXISTS" : "") + " ON ")
      put(name: statement.source.name)
      if let definition { put(definition) }
    case .drop(let name, let ifExists):
      put(name == nil ? "DROP PRIMARY INDEX" : "DROP INDEX")
      put(indexName: name)
      put((ifExists ? " IF EXISTS" : "") + " ON ")
      put(name: statement.source.name)
    case .build(let names):
      put("BUILD INDEX ON ")
      put(name: statement.source.name)
      put(" (")
      put(names) { $0.put(name: $1) }
      put(")")
    }
  }

  private mutating func put(indexName: ByteString?) {
    guard let indexName else { return }
    put(" ")
    put(name: indexName)
  }

  private mutating func put(_ definition: ValueIndexDefinition) {
    put(" (")
    put(definition.expressions) { printer, key in
      guard let unnest = definition.unnest, key.begins(with: unnest.item) else { return printer.put(key) }
      printer.put("DISTINCT ")
      printer.put(
        .iteration(Iteration(.array, key, over: [VariableBinding(unnest.item, in: unnest.array)])))
    }
    put(")")
    put(" WHERE ", definition.condition)
  }
}

extension QueryExpression {
  /// Whether it reads this variable.
  fileprivate func begins(with name: ByteString) -> Bool { sources.contains(name) }
}

extension IndexStatement: CustomStringConvertible {
  /// The statement as text on one line.
  package var description: String {
    var printer = Printer()
    printer.put(self)
    return printer.text
  }
}
