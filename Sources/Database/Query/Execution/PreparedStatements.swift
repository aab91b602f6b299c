import Fleece
import Storage

/// The statements that PREPARE has given names, of an open database. They go when it is closed.
package final class PreparedStatements: Sendable {
  private struct Key: Hashable {
    var owner: String?
    var name: ByteString
  }

  /// The number of statements of one owner. Their texts stay in memory.
  static let most = 256
  static let longestText = 64 << 10

  private let statements = Lock<[Key: QueryStatement]>([:])

  /// Gives a statement its name.
  ///
  /// - Throws: `duplicateName` if another statement has it, unless `replaces`. `invalidUse` when there are too many.
  func set(_ name: ByteString, _ statement: QueryStatement, of owner: String?, replaces: Bool) throws {
    guard statement.description.utf8.count <= Self.longestText else {
      throw QueryError(.invalidUse, "a prepared statement has at most \(Self.longestText >> 10) KiB of text")
    }
    try statements.withLock { statements in
      let key = Key(owner: owner, name: name)
      if let other = statements[key] {
        guard other != statement else { return }
        guard replaces else {
          throw QueryError(
            .duplicateName, "another prepared statement is called \"\(name)\"; PREPARE FORCE replaces it")
        }
      } else if statements.keys.count(where: { $0.owner == owner }) >= Self.most {
        throw QueryError(.invalidUse, "there are \(Self.most) prepared statements already, the most possible")
      }
      statements[key] = statement
    }
  }

  /// The statement with a name.
  ///
  /// - Throws: `unknownName`.
  func statement(_ name: SourceName, of owner: String?, in text: String) throws -> QueryStatement {
    let known = statements.withLock { $0 }
    if let found = known[Key(owner: owner, name: name.name)] { return found }
    let names = known.keys.filter { $0.owner == owner }.map(\.name.string)
    throw QueryError(
      .unknownName,
      "there is no prepared statement \"\(name.name)\"\(Suggestions.hint(for: name.name.string, among: names)): "
        + "PREPARE names one for as long as the database is open", at: name.position, in: text)
  }

  /// All statements of an owner, by their names.
  func all(of owner: String?) -> [(name: ByteString, statement: QueryStatement)] {
    statements.withLock { $0 }.filter { $0.key.owner == owner }
      .map { (name: $0.key.name, statement: $0.value) }.sorted { $0.name < $1.name }
  }
}

extension QuerySource {
  /// What a statement stands for: for EXECUTE the prepared statement, with the values of USING; others stand for themselves.
  ///
  /// - Throws: `unknownName` when there is no such prepared statement.
  package func expanded(_ given: GivenStatement, _ options: Query.Options) throws -> GivenStatement {
    guard let (name, using) = given.execution else { return given }
    let statement = try knowledge.statements.statement(name, of: options.statementOwner, in: given.text)
    let values = try Self.values(of: using, in: given.text)
    return GivenStatement(statement.description, given.parameters.merging(values) { _, value in value })
  }

  /// The parameters that USING gives: the members of an object, or the items of an array for `$1`, `$2`, ….
  static func values(of using: QueryExpression?, in text: String) throws -> [String: JSONValue] {
    guard let using else { return [:] }
    switch using.constant {
    case .array(let items)?:
      return Dictionary(
        uniqueKeysWithValues: items.enumerated().map { (String($0.offset + 1), $0.element) })
    case .object(let members)?:
      var values: [String: JSONValue] = [:]
      for (name, value) in members {
        values[name.utf8.first == UInt8(ascii: "$") ? String(name.dropFirst()) : name] = value
      }
      return values
    default:
      throw QueryError(
        .invalidUse,
        "USING takes an array of constants for $1, $2, …, or an object of them for named parameters",
        at: SourcePosition(0), in: text)
    }
  }
}
