// Converts a syntax tree to a query in which every name is resolved (ResolvedQuery.swift). docs/query.md has
// the rules for names.

import Storage

/// Resolves the names of one query.
struct NameResolver {
  /// The database's name, which FROM may use.
  let databaseName: String
  let starColumnName: Query.Options.StarColumnName
  /// The query's text, for the positions of errors. Nil for a query that was built.
  let text: String?

  /// The names that an expression can use.
  struct Scope {
    /// The sources that are visible.
    var sources: [ResolvedSource] = []
    /// The aliases of results, in clauses that can use them.
    var aliases: [ByteString: QueryExpression] = [:]
    /// The values of the names of WITH.
    var bindings: [ByteString: QueryExpression] = [:]
    /// The variables of quantifiers, and their names in the canonical form.
    var variables: [ByteString: ByteString] = [:]
    /// The clause to name in an error when an aggregate is used here. Nil where aggregates are allowed.
    var noAggregates: String?
    /// In the definition of an index, the name of the document. No path of a definition begins with it.
    var documentName: ByteString?
    /// The clause to name in an error when a window function is used here. Nil where they are allowed.
    var noWindows: String?
    /// The sources of documents.
    var documents: [ResolvedSource] { sources.filter(\.isDocuments) }
    /// The sources that a path without a source's name can belong to.
    var propertySources: [ResolvedSource] { sources.filter(\.hasProperties) }
    /// The sources that `*` stands for.
    var visibleSources: [ResolvedSource] { sources.filter { !$0.isHidden } }

    /// Adds a variable. Returns its name in the canonical form, which isn't the name of a source, because the
    /// expression of an alias can be inserted into the variable's scope.
    mutating func add(variable: ByteString) -> ByteString {
      var name = variable
      while sources.contains(where: { $0.name == name }) || variables.values.contains(name) {
        name = ByteString(name.bytes + [UInt8(ascii: "'")])
      }
      variables[variable] = name
      return name
    }
  }

  var query = ResolvedQuery()
  /// How much a whole query, with those inside of it, may still grow.
  let size: QuerySize
  /// The number of expressions around the one that is being resolved.
  var depth = 0
  /// The number of calls over windows.
  var windowedCalls = 0
  /// For a query inside another one, the names of that one.
  var enclosing: EnclosingScope?
  /// The values of the names of WITH.
  var bindings: [ByteString: QueryExpression] = [:]
  var mentionsDeleted: Set<ByteString> = []
  /// The names of sources that expressions begin with.
  var usedNames: Set<ByteString> = []
  /// The first longer path that doesn't begin with the name of the only source.
  var unprefixedPath: PropertyReference?
  /// The windows of the WINDOW clause, without references to others.
  var windows: [ByteString: WindowDefinition] = [:]
  /// The expression of each item of SELECT. Nil for a star that became several columns.
  var resultExpressions: [QueryExpression?] = []

  init(
    databaseName: String, starColumnName: Query.Options.StarColumnName = .source, text: String?,
    size: QuerySize = QuerySize()
  ) {
    self.size = size
    self.databaseName = databaseName
    self.starColumnName = starColumnName
    self.text = text
  }

  /// Resolves a whole query. Throws a `QueryError` with the position of the wrong name.
  static func resolve(
    _ statement: SelectStatement, databaseName: String,
    starColumnName: Query.Options.StarColumnName = .source, text: String?
  ) throws -> ResolvedQuery {
    var resolver = NameResolver(databaseName: databaseName, starColumnName: starColumnName, text: text)
    try resolver.resolve(statement)
    return resolver.query
  }

  func failure(_ code: QueryError.Code, _ message: String, at position: SourcePosition = SourcePosition())
    -> QueryError
  {
    QueryError(code, message, at: position, in: text)
  }

  mutating func resolve(_ statement: SelectStatement) throws {
    try resolveBindings(statement)
    if let combination = statement.combination { return try resolve(combination, of: statement) }
    try resolveSources(statement)
    var lets = try resolveLets(statement)
    let sources = query.sources
    query.isDistinct = statement.isDistinct
    query.isRaw = statement.isRaw
    let grouped = try resolveGroups(statement, lets)
    let plain = Scope(sources: sources, aliases: grouped, bindings: bindings)
    try collectWindows(statement)
    try resolveColumns(statement, plain)

    for (index, result) in statement.results.enumerated() where result.alias != nil {
      // A name of LET takes precedence in WHERE, and the name of a result elsewhere.
      if let alias = result.alias, lets[alias] == nil { lets[alias] = resultExpressions[index] }
    }
    var aliased = Scope(sources: sources, aliases: lets, bindings: bindings)
    aliased.noWindows = "WHERE"
    aliased.noAggregates = "WHERE: it picks rows before they are grouped; HAVING picks groups"
    if let condition = statement.condition {
      query.conditions += try resolve(condition, aliased).conjuncts
    }
    aliased.noAggregates = "GROUP BY"
    aliased.noWindows = "GROUP BY"
    guard statement.groupBy.count <= QuerySize.terms else { throw failure(.tooLarge, QuerySize.tooManyTerms) }
    var groupBy = try statement.groupBy.map { try resolve($0, aliased) }
    aliased.noAggregates = nil
    aliased.aliases.merge(grouped) { result, _ in result }
    aliased.noWindows = "HAVING"
    if let having = statement.having {
      guard !statement.groupBy.isEmpty else {
        throw failure(.invalidUse, "HAVING needs a GROUP BY; without GROUP BY, use WHERE")
      }
      query.having = try resolve(having, aliased)
    }
    aliased.noWindows = nil
    query.orderBy = try statement.orderBy.flatMap { try resolve($0, aliased).terms }
    query.orderRanksByID()
    query.limit = try statement.limit.map { try resolveConstant($0, "LIMIT") }
    query.offset = try statement.offset.map { try resolveConstant($0, "OFFSET") }

    if !statement.groupingSets.isEmpty { groupBy = try resolveGroupingSets(statement, groupBy) }
    let hasAggregates =
      query.columns.contains { $0.expression.hasAggregates } || (query.having?.hasAggregates ?? false)
      || query.orderBy.contains { $0.expression.hasAggregates }
    if hasAggregates || !groupBy.isEmpty { query.groupBy = groupBy }
    query.hasWindows =
      query.columns.contains { $0.expression.hasWindows }
      || query.orderBy.contains { $0.expression.hasWindows }
    try checkRanks()
    try checkAlias(statement)
    try exclude(statement)
    for index in query.sources.indices where mentionsDeleted.contains(query.sources[index].name) {
      query.sources[index].includesDeleted = true
    }
  }

  // MARK: Sources

  func checkUnused(_ alias: ByteString, _ position: SourcePosition) throws {
    guard query.sources.count < QuerySize.sources else {
      throw failure(.tooLarge, QuerySize.tooManySources, at: position)
    }
    guard !query.sources.contains(where: { $0.name == alias }) else {
      throw failure(
        .duplicateName, "two sources are called \"\(alias)\"; give one of them another alias", at: position)
    }
  }

  /// Refuses `SELECT x.a FROM _ AS y`: when nothing uses the alias, `x` is more likely a mistake than a
  /// property.
  private func checkAlias(_ statement: SelectStatement) throws {
    guard let alias = statement.source?.alias, alias.bytes.first != 1, statement.joins.isEmpty,
      !usedNames.contains(alias),
      let path = unprefixedPath, case .name(let first)? = path.steps.first
    else { return }
    throw failure(
      .unknownName,
      "there is no source \"\(first)\"; the source is called \"\(alias)\", and a property is \(alias).\(path.pathText)",
      at: path.position)
  }

  mutating func resolveConstant(_ expression: QueryExpression, _ clause: String) throws
    -> QueryExpression
  {
    var scope = Scope(bindings: bindings)
    scope.noAggregates = clause
    do { return try resolve(expression, scope) } catch let error as QueryError
      where error.code == .unknownName
    {
      throw QueryError(
        .invalidUse, "\(clause) can't depend on a property, because it is the same for all rows",
        at: SourcePosition(error.location?.offset), in: text)
    }
  }

  // MARK: Columns

  private mutating func resolveColumns(_ statement: SelectStatement, _ scope: Scope) throws {
    let star = starColumnName == .databaseName ? ByteString(databaseName) : nil
    let names = try statement.uniqueColumnNames(in: text, ofStar: star)
    var taken = Set(names)
    for (result, name) in zip(statement.results, names) {
      guard case .star(nil) = result.expression, scope.visibleSources.count > 1 else {
        let expression = try resolve(result.expression, scope)
        query.columns.append(
          ResolvedColumn(name: name, expression: expression, isNamed: result.alias != nil))
        resultExpressions.append(expression)
        continue
      }
      guard result.alias == nil else {
        throw failure(
          .invalidUse, "* of several sources is several columns, which can't share one alias",
          at: result.position)
      }
      guard !statement.isRaw else {
        throw failure(.invalidUse, "RAW takes one value, and * of several sources is several")
      }
      for (number, source) in scope.visibleSources.enumerated() {
        var column = number == 0 ? name : source.name
        var count = 1
        while number > 0, !taken.insert(column).inserted {
          count += 1
          column = ByteString("\(source.name) #\(count)")
        }
        query.columns.append(ResolvedColumn(name: column, expression: whole(source, at: result.position)))
      }
      resultExpressions.append(nil)
    }
  }

  /// The whole row of a source.
  func whole(_ source: ResolvedSource, at position: SourcePosition) -> QueryExpression {
    source.isDocuments
      ? .star(source: SourceName(source.name, position: position))
      : .property(PropertyReference([.name(source.name)], position: position))
  }
}
