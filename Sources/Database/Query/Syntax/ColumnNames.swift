import Storage

extension SelectStatement {
  /// The names of the result columns, in order.
  ///
  /// A column is named by its alias. Without an alias, the name is the last name of a property's path, the
  /// member of META, or for `*` the source (its alias, or the name after FROM). Other columns are named `$1`,
  /// `$2` and so on. A repeated name gets the suffix ` #2`, ` #3`. (spec/query.md, section 4)
  ///
  /// - Parameter text: the query's text, for the position of an error.
  /// - Throws: `QueryError` (`duplicateName`) when two columns have the same alias.
  public func columnNames(in text: String? = nil) throws(QueryError) -> [String] {
    try uniqueColumnNames(in: text, ofStar: nil).map(\.string)
  }

  /// - Parameter star: the name of a `*` whose source has no alias. Nil means the source's own name.
  func uniqueColumnNames(in text: String?, ofStar star: ByteString?) throws(QueryError) -> [ByteString] {
    if case .combined(let left, _, _, let right)? = combination {
      let names = try left.uniqueColumnNames(in: text, ofStar: star)
      let others = try right.uniqueColumnNames(in: text, ofStar: star)
      return names + others.filter { !names.contains($0) }
    }
    var aliases: Set<ByteString> = []
    for result in results {
      guard let alias = result.alias, !aliases.insert(alias).inserted else { continue }
      throw QueryError(.duplicateName, "two results are named \"\(alias)\"", at: result.position, in: text)
    }
    var taken = aliases
    var unnamed = 0
    // How often a name came, so that not all of its suffixes are tried again.
    var counts: [ByteString: Int] = [:]
    return results.map { result in
      if let alias = result.alias { return alias }
      let name: ByteString
      if let own = implicitName(of: result.expression, ofStar: star) {
        name = own
      } else {
        unnamed += 1
        name = ByteString("$\(unnamed)")
      }
      var unique = name
      var count = counts[name] ?? 1
      defer { counts[name] = count }
      while !taken.insert(unique).inserted {
        count += 1
        unique = ByteString("\(name) #\(count)")
      }
      return unique
    }
  }

  private func implicitName(of expression: QueryExpression, ofStar star: ByteString?) -> ByteString? {
    switch expression {
    case .property(let path): return path.steps.lazy.compactMap(\.name).last
    case .meta(_, let member?): return ByteString(member.rawValue)
    case .star(let name):
      guard let source, name == nil || name?.name == source.ownName else { return name?.name }
      return source.alias == nil ? star ?? source.ownName : source.ownName
    default: return nil
    }
  }
}
