extension SelectStatement {
  /// The names of the results, in their order.
  ///
  /// An alias names its column; else the last name of a property's path, META's member, or for `*` the source
  /// (its alias, or the name that follows FROM). What is left is `$1`, `$2` and so on. A name that would come twice
  /// is followed by ` #2`, ` #3`. (spec/query.md, section 4)
  ///
  /// - Parameter text: the query's text, for the error's place.
  /// - Throws: `QueryError` (`duplicateName`) when two columns have the same alias.
  public func columnNames(in text: String? = nil) throws(QueryError) -> [String] {
    var aliases: Set<String> = []
    for result in results {
      guard let alias = result.alias, !aliases.insert(alias).inserted else { continue }
      throw QueryError(.duplicateName, "two results are named \"\(alias)\"", at: result.position, in: text)
    }
    var taken = aliases
    var unnamed = 0
    return results.map { result in
      if let alias = result.alias { return alias }
      let name: String
      if let own = implicitName(of: result.expression) {
        name = own
      } else {
        unnamed += 1
        name = "$\(unnamed)"
      }
      var unique = name
      var count = 1
      while !taken.insert(unique).inserted {
        count += 1
        unique = "\(name) #\(count)"
      }
      return unique
    }
  }

  private func implicitName(of expression: Expression) -> String? {
    switch expression {
    case .property(let path):
      for case .name(let name) in path.steps.reversed() { return name }
      return nil
    case .meta(_, let member?): return member.rawValue
    case .star(let name?): return name.name
    case .star(nil): return source.map { $0.alias ?? $0.name }
    default: return nil
    }
  }
}
