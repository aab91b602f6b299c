import Documents
import Query

// CREATE INDEX, DROP INDEX and BUILD INDEX (docs/query-changes.md).

extension Database {
  /// Carries out a statement about indexes.
  ///
  /// - Throws: a `QueryError` (`index`) for an index that exists already, or for one that doesn't exist.
  func perform(_ statement: IndexStatement) throws -> [ChangeResults.Index] {
    let known = try Set(indexes.map(\.name))
    func unknown(_ name: String) -> QueryError {
      QueryError(.index, "there is no index \"\(name)\"")
    }
    switch statement.action {
    case .create(let name?, let definition?, let unlessExists):
      let name = name.string
      guard !known.contains(name) else {
        guard unlessExists else {
          throw QueryError(
            .index, "there is an index \"\(name)\" already; with IF NOT EXISTS it stays as it is")
        }
        return [.init(name: name, kind: .unchanged)]
      }
      try createIndex(name, definition)
      return [.init(name: name, kind: .created)]
    // The documents are in the order of their IDs: that is the primary index.
    case .create(let name, _, _): return [.init(name: name?.string ?? "#primary", kind: .unchanged)]
    case .drop(let name?, let ifExists):
      let name = name.string
      guard try deleteIndex(name) else {
        guard ifExists else { throw unknown(name) }
        return [.init(name: name, kind: .unchanged)]
      }
      return [.init(name: name, kind: .dropped)]
    case .drop(nil, _):
      throw QueryError(.index, "the primary index can't be dropped: documents are in the order of their IDs")
    case .build(let names):
      return try names.map {
        guard known.contains($0.string) else { throw unknown($0.string) }
        return .init(name: $0.string, kind: .unchanged)
      }
    }
  }
}
