import Documents
import Storage

// What a value index holds of each document.
//
//   definition := version:u8=1 field*
//   field      := tag:u8  length:varint  text       text: an expression of the query language, or a name
//
//   tag 1  an indexed expression, in their order; at least one
//   tag 2  WHERE: documents that don't meet it aren't in the index
//   tag 3  UNNEST: an array; there is an entry for each item
//   tag 4  the name that the other expressions know the item by

/// What a value index holds: the values of some expressions, of all documents or of those that meet a condition.
///
/// A document in which an expression has no value is in the index as well, with `missing`. An array index has an entry
/// for each item of an array; a document without that array, or with an empty one, isn't in it.
public struct ValueIndexDefinition: Hashable, Sendable {
  /// The items of an array, under a name.
  public struct Unnest: Hashable, Sendable {
    /// The array.
    public var array: Expression
    /// What expressions that are about an item begin with.
    public var item: ByteString

    /// The items of `array`, called `item`.
    public init(_ array: Expression, as item: ByteString) {
      self.array = array
      self.item = item
    }
  }

  /// What is indexed, the most significant first: paths and functions of a document, or of an item. 1 to 32.
  public var expressions: [Expression]
  /// What a document has to meet.
  public var condition: Expression?
  /// Of an array index, the array.
  public var unnest: Unnest?

  static let maximumExpressions = 32
  static let version: UInt8 = 1

  /// An index on these expressions.
  public init(_ expressions: [Expression], where condition: Expression? = nil, unnest: Unnest? = nil) {
    self.expressions = expressions
    self.condition = condition
    self.unnest = unnest
  }

  /// An index on expressions as text: `["type", "LOWER(name)"]`. `unnest` is an array, which may be named:
  /// `reviews AS r`; without a name its items are called `item`, and without `expressions` they are what is indexed.
  ///
  /// - Throws: `syntax` and its kin, with the place in the text that is wrong.
  public init(_ expressions: [String], where condition: String? = nil, unnest: String? = nil)
    throws(QueryError)
  {
    var parsed: [Expression] = []
    for text in expressions { parsed.append(try Expression(parsing: text)) }
    self.expressions = parsed
    if let condition { self.condition = try Expression(parsing: condition) }
    guard let unnest else { return }
    // The clause of a query says the same.
    let clause = try SelectStatement(parsing: "SELECT 1 FROM _ UNNEST \(unnest)")
    guard clause.joins.count == 1, clause.condition == nil, clause.orderBy.isEmpty, clause.groupBy.isEmpty,
      clause.limit == nil, clause.offset == nil, case .unnest(let array, as: let name, _) = clause.joins[0]
    else {
      throw QueryError(.index, "an array index is of one array, such as \"reviews AS r\", not \"\(unnest)\"")
    }
    self.unnest = Unnest(array, as: name)
    if parsed.isEmpty { self.expressions = [.property(PropertyReference([.name(name)]))] }
  }

  /// For people: `type, name WHERE type = "hotel"`.
  public var text: String {
    var text = expressions.map(\.description).joined(separator: ", ")
    if let unnest { text += " UNNEST \(unnest.array) AS \(unnest.item)" }
    if let condition { text += " WHERE \(condition)" }
    return text
  }

  // MARK: What is stored

  /// The bytes by which a database remembers the definition.
  public var encoded: [UInt8] {
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

  /// The definition of a value index that a database has. Throws `index` for what can't be read.
  public init(_ index: IndexRecord) throws { try self.init(encoded: index.definition) }

  /// Reads what is stored. Throws `index` for what can't be read.
  init(encoded bytes: [UInt8]) throws {
    let damaged = QueryError(.index, "the definition of a value index can't be read")
    guard let version = bytes.first else { throw damaged }
    guard version == ValueIndexDefinition.version else {
      throw QueryError(
        .index, "the definition of a value index is of version \(version), which isn't known here")
    }
    var offset = 1
    var array: Expression?
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
      case 1: expressions.append(try Expression(parsing: text))
      case 2: condition = try Expression(parsing: text)
      case 3: array = try Expression(parsing: text)
      case 4: item = ByteString(text)
      default: throw damaged
      }
    }
    guard !expressions.isEmpty, (array == nil) == (item == nil) else { throw damaged }
    if let array, let item { unnest = Unnest(array, as: item) }
  }

  // MARK: What can be indexed

  /// Throws what is wrong with it: unknown functions, and `index` for what isn't the same at any time for the same
  /// body.
  public func check() throws { _ = try ValueIndexExtractor(self) }

  func checkExpressions() throws(QueryError) {
    guard (1...ValueIndexDefinition.maximumExpressions).contains(expressions.count) else {
      throw QueryError(
        .index,
        "an index is on 1 to \(ValueIndexDefinition.maximumExpressions) expressions, not \(expressions.count)"
      )
    }
    for expression in expressions + [condition, unnest?.array].compactMap({ $0 }) {
      if let reason = ValueIndexDefinition.obstacle(in: expression) {
        throw QueryError(.index, "\"\(expression)\" can't be indexed: \(reason)")
      }
    }
  }

  private static func obstacle(in expression: Expression) -> String? {
    switch expression {
    case .meta(_, let property) where property != .id:
      return "of META() only the id is of the document's body"
    case .star: return "* is a whole document"
    case .collate: return "an index orders text by its bytes"
    case .exists, .match, .rank: return "it depends on other documents"
    case .call(let call) where call.name.hasPrefix("NOW_") || call.name.hasPrefix("CLOCK_"):
      return "\(call.name)() says something else each time"
    default: break
    }
    var reason: String?
    expression.forEachPart { if reason == nil { reason = obstacle(in: $0) } }
    return reason
  }
}

extension [UInt8] {
  mutating func append(varint value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  /// Reads a varint and goes behind it; nil when there is none.
  func varint(at offset: inout Int) -> UInt64? { withUnsafeBytes { $0.varint(at: &offset) } }
}

extension UnsafeRawBufferPointer {
  /// Reads a varint and goes behind it; nil when there is none.
  func varint(at offset: inout Int) -> UInt64? {
    var value: UInt64 = 0
    for index in 0..<10 {
      guard offset < count else { return nil }
      let byte = self[offset]
      if index == 9, byte > 1 { return nil }
      offset += 1
      value |= UInt64(byte & 0x7F) << UInt64(7 * index)
      if byte < 0x80 { return value }
    }
    return nil
  }
}
