import Bytes
import Documents
import Storage

// The stored definition of a value index.
//
//   definition := version:u8=1 field*
//   field      := tag:u8  length:varint  text       text: an expression of the query language, or a name
//
//   tag 1  an indexed expression, in their order; at least one
//   tag 2  WHERE: documents that don't meet it aren't in the index
//   tag 3  UNNEST: an array; there is an entry for each item
//   tag 4  the name that the other expressions know the item by

/// The definition of a value index: the values of some expressions, for all documents or for those that meet
/// a condition.
///
/// A document in which an expression has no value is in the index too, with `missing`. An array index has one
/// entry for each item of an array. A document without that array, or with an empty one, isn't in it.
public struct ValueIndexDefinition: Hashable, Sendable {
  /// The items of an array, and the name for an item.
  public struct Unnest: Hashable, Sendable {
    /// The array.
    public var array: QueryExpression
    /// The name of an item. Expressions about an item begin with it.
    public var item: ByteString

    /// Creates an array clause for `array`, with items named `item`.
    public init(_ array: QueryExpression, as item: ByteString) {
      self.array = array
      self.item = item
    }
  }

  /// The indexed expressions, the most significant first: paths and functions of a document or of an item. 1
  /// to 32.
  public var expressions: [QueryExpression]
  /// The condition that indexed documents have to meet. Nil indexes all documents.
  public var condition: QueryExpression?
  /// The array of an array index. Nil for other indexes.
  public var unnest: Unnest?

  static let maximumExpressions = 32
  static let version: UInt8 = 1

  /// Creates a definition from expressions.
  public init(
    _ expressions: [QueryExpression], where condition: QueryExpression? = nil, unnest: Unnest? = nil
  ) {
    self.expressions = expressions
    self.condition = condition
    self.unnest = unnest
  }

  /// Creates a definition from the text of expressions: `["type", "LOWER(name)"]`.
  ///
  /// `unnest` is an array, which may have an alias: `reviews AS r`. Without an alias, the items have the last
  /// name of the array's path. Without `expressions`, the items themselves are indexed.
  ///
  /// - Throws: `syntax` and related errors, with the position of the mistake in its text.
  public init(_ expressions: [String], where condition: String? = nil, unnest: String? = nil)
    throws(QueryError)
  {
    var parsed: [QueryExpression] = []
    for text in expressions { parsed.append(try QueryExpression(parsing: text)) }
    self.expressions = parsed
    if let condition { self.condition = try QueryExpression(parsing: condition) }
    guard let unnest else { return }
    // The UNNEST clause of a query has the same syntax.
    let clause = try SelectStatement(parsing: "SELECT 1 FROM _ UNNEST \(unnest)")
    guard clause.joins.count == 1, clause.condition == nil, clause.orderBy.isEmpty, clause.groupBy.isEmpty,
      clause.limit == nil, clause.offset == nil, case .unnest(let array, as: let name, _) = clause.joins[0]
    else {
      throw QueryError(.index, "an array index needs one array, such as \"reviews AS r\", not \"\(unnest)\"")
    }
    self.unnest = Unnest(array, as: name)
    if parsed.isEmpty { self.expressions = [.property(PropertyReference([.name(name)]))] }
  }

  /// A readable text, such as `type, name WHERE type = 'hotel'`.
  public var text: String {
    var text = expressions.map(\.description).joined(separator: ", ")
    if let unnest { text += " UNNEST \(unnest.array) AS \(unnest.item)" }
    if let condition { text += " WHERE \(condition)" }
    return text
  }

  // MARK: Stored form

  /// The stored form of the definition.
  package var encoded: [UInt8] {
    var bytes = [ValueIndexDefinition.version]
    func add(_ tag: UInt8, _ text: ByteString) {
      bytes.append(tag)
      bytes.append(varint: UInt64(text.bytes.count))
      bytes += text.bytes
    }
    for expression in expressions { add(1, ByteString(expression.description)) }
    if let condition { add(2, ByteString(condition.description)) }
    if let unnest {
      add(3, ByteString(unnest.array.description))
      add(4, unnest.item)
    }
    return bytes
  }

  /// Reads the definition of a value index of a database. Throws `index` when it can't be read.
  package init(_ index: IndexRecord) throws { try self.init(encoded: index.definition) }

  /// Decodes a stored definition. Throws `index` when it can't be read.
  init(encoded bytes: [UInt8]) throws {
    let damaged = QueryError(.index, "the definition of a value index can't be read")
    guard let version = bytes.first else { throw damaged }
    guard version == ValueIndexDefinition.version else {
      throw QueryError(
        .index, "the definition of a value index has version \(version), which this release doesn't support")
    }
    var offset = 1
    var array: QueryExpression?
    var item: ByteString?
    expressions = []
    while offset < bytes.count {
      let tag = bytes[offset]
      offset += 1
      guard let length = bytes.varint(at: &offset), length <= UInt64(bytes.count - offset),
        let text = String(validating: bytes[offset..<(offset + Int(length))], as: UTF8.self)
      else { throw damaged }
      offset += Int(length)
      switch tag {
      case 1: expressions.append(try QueryExpression(parsing: text))
      case 2: condition = try QueryExpression(parsing: text)
      case 3: array = try QueryExpression(parsing: text)
      case 4: item = ByteString(text)
      default: throw damaged
      }
    }
    guard !expressions.isEmpty, (array == nil) == (item == nil) else { throw damaged }
    if let array, let item { unnest = Unnest(array, as: item) }
  }

  // MARK: Validation

  /// Checks whether the definition can be indexed. Throws `unknownFunction` and related errors for invalid
  /// expressions, and `index` for expressions that depend on more than the document's ID and body.
  package func check() throws { _ = try ValueIndexExtractor(self) }

  func checkExpressions() throws(QueryError) {
    guard (1...ValueIndexDefinition.maximumExpressions).contains(expressions.count) else {
      throw QueryError(
        .index,
        "an index must have 1 to \(ValueIndexDefinition.maximumExpressions) expressions, not \(expressions.count)"
      )
    }
    for expression in expressions + [condition, unnest?.array].compactMap({ $0 }) {
      if let reason = ValueIndexDefinition.obstacle(in: expression) {
        throw QueryError(.index, "\"\(expression)\" can't be indexed: \(reason)")
      }
    }
  }

  private static func obstacle(in expression: QueryExpression) -> String? {
    switch expression {
    case .meta(_, let property) where property != .id:
      return "of META() only the id is of the document's body"
    case .star: return "* is a whole document"
    case .collate: return "an index orders text by its bytes"
    case .exists, .subquery, .match, .rank: return "it depends on other documents"
    case .call(let call) where expression.callVolatility >= .run:
      return "\(call.name)() has another result each time"
    default: break
    }
    var reason: String?
    expression.forEachPart { if reason == nil { reason = obstacle(in: $0) } }
    return reason
  }
}
