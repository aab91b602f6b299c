import Fleece

extension MangoSelector {
  /// The normal form as JSON, as `_explain` shows it.
  package var json: OrderedJSON {
    switch self {
    case .all: [:]
    case .and(let parts): ["$and": .array(parts.map(\.json))]
    case .or(let parts): ["$or": .array(parts.map(\.json))]
    case .not(let other): ["$not": other.json]
    case .field(let field, let condition): .object([.init(name: field.joined, value: condition.json)])
    }
  }

  /// The fields, in the order in which they are named.
  var fields: [MangoField] {
    switch self {
    case .all: []
    case .and(let parts), .or(let parts): parts.flatMap(\.fields)
    case .not(let other): other.fields
    case .field(let field, _): [field]
    }
  }
}

extension MangoCondition {
  fileprivate var json: OrderedJSON {
    switch self {
    case .compare(let comparison, let operand):
      .object([.init(name: comparison.rawValue, value: OrderedJSON(sorting: operand.value))])
    case .isIn(let operands): ["$in": Self.list(operands)]
    case .isNotIn(let operands): ["$nin": Self.list(operands)]
    case .exists(let isWanted): ["$exists": .scalar(.bool(isWanted))]
    case .type(let type): ["$type": .scalar(.string(type))]
    case .modulo(let divisor, let remainder):
      ["$mod": [.scalar(.int(divisor)), .scalar(.int(remainder))]]
    case .size(let count): ["$size": .scalar(.int(count))]
    case .matches(let pattern): ["$regex": .scalar(.string(pattern.source))]
    case .beginsWith(let text): ["$beginsWith": .scalar(.string(text))]
    case .hasAll(let values): ["$all": .array(values.map { OrderedJSON(sorting: $0) })]
    case .someItem(let inner): ["$elemMatch": inner.json]
    case .everyItem(let inner): ["$allMatch": inner.json]
    case .someName(let inner): ["$keyMapMatch": inner.json]
    case .not(let other): ["$not": other.json]
    }
  }

  private static func list(_ operands: [MangoOperand]) -> OrderedJSON {
    .array(operands.map { OrderedJSON(sorting: $0.value) })
  }
}
