import TestSupport
// Random syntax trees: everything that the grammar can say.

@testable import Query

/// Makes trees that the parser could have made.
struct RandomTree {
  var random: SeededGenerator
  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  static let names = [
    "a", "name", "type", "x1", "_id", "r$", "select", "ORDER", "from", "all", "some", "exists", "explain",
    "full", "raw", "Value", "let", "union", "with", "use", "nest", "exclude", "lateral", "keys",
    "null", "mr.grieves", "a`b", "``", "größe", "two words", "", "*", "NOCASE", "meta", "with\nbreak",
    "e\u{301}'`", "e\u{301}", "\u{E9}",
  ]
  static let strings = [
    "", "it's", "\"quoted\"", "100\\%", "naïve 😀", "a\nb", "'", "''", "--", "/*", "$x", "'\u{301}",
  ]

  mutating func one<T>(_ items: [T]) -> T { items[Int.random(in: items.indices, using: &random)] }
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
  mutating func name() -> ByteString { ByteString(one(Self.names)) }
  mutating func some<T>(_ range: ClosedRange<Int>, _ make: (inout RandomTree) -> T) -> [T] {
    let count = Int.random(in: range, using: &random)
    return (0..<count).map { _ in make(&self) }
  }
  mutating func maybe<T>(_ percent: Int, _ make: (inout RandomTree) -> T) -> T? {
    chance(percent) ? make(&self) : nil
  }

  mutating func literal() -> Literal {
    switch Int.random(in: 0..<9, using: &random) {
    case 0: .missing
    case 1: .null
    case 2: .bool(chance(50))
    case 3: .int(one([0, 1, -1, 17, .max, .min, Int64.random(in: .min ... .max, using: &random)]))
    case 4:
      .double(
        one([
          0.5, -0.0, 1e300, -1e-300, .leastNonzeroMagnitude, .greatestFiniteMagnitude, 1e16, 5,
          Double.random(in: -1e6...1e6, using: &random),
        ]))
    case 5: .uint(one([1 << 63, .max, UInt64.random(in: 1 << 63 ... .max, using: &random)]))
    default: .string(one(Self.strings))
    }
  }

  mutating func steps(_ range: ClosedRange<Int>) -> [PathStep] {
    some(range) { $0.chance(30) ? .index($0.one([0, 1, -1, 99])) : .name($0.name()) }
  }

  mutating func expression(depth: Int) -> QueryExpression {
    guard depth > 0 else {
      switch Int.random(in: 0..<8, using: &random) {
      case 0, 1: return .literal(literal())
      case 2: return .parameter(one(["x", "Name", "p_1", "$$", "1"]))
      case 3: return .star(source: maybe(70) { SourceName($0.name()) })
      case 4:
        return .meta(source: maybe(50) { SourceName($0.name()) }, maybe(70) { $0.one(MetaProperty.allCases) })
      case 5: return .rank(IndexReference(name(), source: maybe(50) { $0.name() }))
      default: return .property(PropertyReference([.name(name())] + steps(0...3)))
      }
    }
    func deeper(_ tree: inout RandomTree) -> QueryExpression {
      tree.expression(depth: Int.random(in: 0..<depth, using: &tree.random))
    }
    if chance(15) { return reference(depth: depth, deeper) }
    switch Int.random(in: 0..<19, using: &random) {
    case 0: return .member(deeper(&self), steps(1...3))
    case 1: return .array(some(0...3, deeper))
    case 2: return .object(some(0...3) { ObjectMember($0.one(Self.names + Self.strings), deeper(&$0)) })
    case 3, 4: return .unary(one(UnaryOperator.allCases), deeper(&self))
    case 5, 6, 7, 8: return .binary(one(BinaryOperator.allCases), deeper(&self), deeper(&self))
    case 9: return .test(deeper(&self), one(ValueTest.allCases), negated: chance(50))
    case 10: return .between(deeper(&self), lower: deeper(&self), upper: deeper(&self), negated: chance(50))
    case 11: return .contained(deeper(&self), in: deeper(&self), negated: chance(50))
    case 12: return .like(deeper(&self), pattern: deeper(&self), negated: chance(50))
    case 13:
      return .conditional(
        operand: maybe(50, deeper),
        branches: some(1...3) { ConditionalBranch(when: deeper(&$0), then: deeper(&$0)) },
        otherwise: maybe(50, deeper))
    case 14:
      return .quantified(
        one(Quantifier.allCases), variable: name(), in: deeper(&self), satisfies: deeper(&self))
    case 15: return chance(50) ? .exists(query(depth: depth - 1)) : .subquery(query(depth: depth - 1))
    case 16:
      let signature = one(
        QueryFunction.all.values.filter { !$0.isWindowFunction }.sorted { $0.name < $1.name })
      let count = min(
        signature.arguments.upperBound, signature.arguments.lowerBound + Int.random(in: 0...2, using: &random)
      )
      return .call(
        FunctionCall(
          signature.name, (0..<count).map { _ in deeper(&self) },
          isDistinct: signature.isAggregate && chance(40),
          filter: signature.isAggregate ? maybe(20, deeper) : nil,
          window: signature.isAggregate && chance(20) ? WindowCall(window(deeper)) : nil))
    case 17: return .match(IndexReference(name(), source: maybe(50) { $0.name() }), deeper(&self))
    default:
      let isUnicode = chance(60)
      return .collate(
        deeper(&self),
        Collation(
          isUnicode: isUnicode, ignoresCase: chance(50), ignoresDiacritics: chance(50),
          locale: isUnicode ? maybe(40) { $0.one(["sv", "pt_BR", "es-419", "de@collation=phonebook"]) } : nil)
      )
    }
  }

  mutating func source(depth: Int = 0) -> DataSource {
    var source = DataSource(name(), as: maybe(60) { $0.name() })
    if depth > 0, chance(25) {
      let items = chance(50) ? .subquery(select(depth: depth - 1)) : expression(depth: depth - 1)
      source = DataSource(items: items, as: name())
    } else {
      source.keys = maybe(15) { $0.expression(depth: max(0, depth - 1)) }
    }
    if chance(15) { source.indexes = some(1...2) { $0.name() } }
    return source
  }

  private mutating func bindings(depth: Int) -> [LetBinding] {
    some(1...2) { LetBinding($0.name(), $0.expression(depth: depth)) }
  }

  /// A query of sets, or one with WITH.
  mutating func query(depth: Int) -> SelectStatement {
    guard depth > 0, chance(40) else { return select(depth: depth) }
    var query = select(depth: depth - 1)
    if chance(60) {
      query = SelectStatement(results: [])
      query.combination = .combined(
        self.query(depth: depth - 1), one(SetOperator.allCases), isAll: chance(40),
        self.query(depth: depth - 1))
      query.limit = maybe(30) { $0.expression(depth: 0) }
    }
    if chance(40) {
      query.isRecursive = chance(30)
      query.with = some(1...2) { tree in
        let value =
          tree.chance(50) ? .subquery(tree.query(depth: depth - 1)) : tree.expression(depth: depth - 1)
        var binding = WithBinding(tree.name(), value)
        if query.isRecursive, tree.chance(50) { binding.levels = .literal(.int(3)) }
        return binding
      }
    }
    return query
  }

  mutating func select(depth: Int) -> SelectStatement {
    func inner(_ tree: inout RandomTree) -> QueryExpression { tree.expression(depth: max(0, depth)) }
    var select = SelectStatement(
      isDistinct: chance(30),
      results: some(1...3) { ResultColumn(inner(&$0), as: $0.maybe(50) { $0.name() }) })
    if chance(90) {
      select.source = source(depth: depth)
      select.joins = some(0...2) { tree in
        if tree.chance(15) {
          return .nest(tree.source(depth: depth), on: inner(&tree), isLeftOuter: tree.chance(50))
        }
        if tree.chance(30) { return .unnest(inner(&tree), as: tree.name(), isLeftOuter: tree.chance(50)) }
        let kind = tree.one(JoinKind.allCases)
        return .join(kind, tree.source(depth: depth), on: kind == .cross ? nil : inner(&tree))
      }
    }
    if chance(20) {
      select.isRaw = true
      select.results = [select.results[0]]
    }
    if chance(15) {
      select.excluded = some(1...2) { tree in PropertyReference(tree.some(1...2) { .name($0.name()) }) }
    }
    if chance(25) { select.lets = bindings(depth: max(0, depth)) }
    select.condition = maybe(60, inner)
    // A number or a text alone is no group and no order.
    func isTerm(_ expression: QueryExpression) -> Bool {
      if case .literal = expression.uncollated.operand { false } else { true }
    }
    select.groupBy = chance(30) ? some(1...2, inner).filter(isTerm) : []
    if !select.groupBy.isEmpty {
      let keys = select.groupBy
      if chance(25) {
        select = select.groupBy(
          sets: chance(50) ? GroupingSets.cube(keys.map { [$0] }) : [keys, [keys[0]], []])
      }
      for index in select.groupBy.indices where select.groupingSets.isEmpty && chance(30) {
        select.groupNames[index] = name()
      }
      select.groupArray = maybe(20) { $0.name() }
      if chance(20) { select.letting = bindings(depth: max(0, depth)) }
      select.having = maybe(50, inner)
    }
    select.windows = some(0...1) { NamedWindow($0.name().string, $0.window(inner)) }
    select.orderBy = some(0...2) { $0.ordering(inner) }.filter { isTerm($0.expression) }
    select.limit = maybe(40, inner)
    select.offset = maybe(30, inner)
    return select
  }
}
