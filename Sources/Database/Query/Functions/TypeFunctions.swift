// Functions that test or convert the type of a value. Missing stays missing and null stays null, except in
// TYPE.

enum TypeFunctions {
  // Other names, such as IS_ARRAY, are in `QueryFunction.aliases`.
  static let table: [QueryFunction] =
    [QueryFunction("TYPE", 1...1) { arguments, _, _ in QueryValue(arguments[0].type.name) }]
    + test("ARRAY") { $0 == .array } + test("BOOLEAN") { $0 == .boolean } + test("NUMBER") { $0 == .number }
    + test("OBJECT") { $0 == .object } + test("STRING") { $0 == .string }
    + test("BINARY") { $0 == .binary }
    + test("ATOM") { $0 == .boolean || $0 == .number || $0 == .string }
    + conversion("ARRAY", toArray) + conversion("ATOM") { value, _ in toAtom(value, depth: 0) }
    + conversion("BOOLEAN") { value, _ in .bool(toBoolean(value)) }
    + conversion("NUMBER") { value, _ in toNumber(value) } + conversion("STRING", toString)
    + conversion("OBJECT") { value, context in
      value.type == .object
        ? value : context.arena.object(context.arena.allocate(0, of: ComputedObject.Member.self), 0)
    }

  private static func test(_ name: String, _ body: @escaping @Sendable (QueryType) -> Bool) -> [QueryFunction]
  {
    [
      QueryFunction("IS\(name)", 1...1) { arguments, _, _ in
        arguments[0].isUnknown ? arguments[0] : .bool(body(arguments[0].type))
      }
    ]
  }

  private static func conversion(
    _ name: String, _ body: @escaping @Sendable (QueryValue, EvaluationContext) -> QueryValue
  ) -> [QueryFunction] {
    [
      QueryFunction("TO\(name)", 1...1) { arguments, context, _ in
        arguments[0].isUnknown ? arguments[0] : body(arguments[0], context)
      }
    ]
  }

  /// An array as it is, any other value as the only item of an array.
  @Sendable private static func toArray(_ value: QueryValue, _ context: EvaluationContext) -> QueryValue {
    value.type == .array ? value : context.arena.array([value])
  }

  /// The atom inside arrays of one item and objects of one member. Null when there isn't exactly one.
  private static func toAtom(_ value: QueryValue, depth: Int) -> QueryValue {
    switch value.type {
    case .boolean, .number, .string: return value
    case .array, .object:
      guard depth < 200 else { return .null }
      var only = QueryValue.null
      var count = 0
      value.forEachItem { item in
        only = item
        count += 1
        return count < 2
      }
      return count == 1 ? toAtom(only, depth: depth + 1) : .null
    default: return .null
    }
  }

  /// False for 0 and for empty values.
  private static func toBoolean(_ value: QueryValue) -> Bool {
    switch value {
    case .bool(let value): value
    case .int(let value): value != 0
    case .double(let value): value != 0
    case .uint: true
    case .string(let text), .data(let text): text.count > 0
    default: value.count > 0
    }
  }

  /// 1 and 0 for booleans, and the number that a string spells. Null for other values.
  private static func toNumber(_ value: QueryValue) -> QueryValue {
    switch value {
    case .int, .uint, .double: value
    case .bool(let value): .int(value ? 1 : 0)
    case .string(let text): number(text.string)
    default: .null
    }
  }

  /// Parses a decimal number, which may have white space around it. Null for other text.
  static func number(_ string: String) -> QueryValue {
    let text = string.trimmingWhitespace
    guard text.utf8.contains(where: { $0 >= 0x30 && $0 <= 0x39 }),
      text.utf8.allSatisfy({
        ($0 >= 0x30 && $0 <= 0x39) || [0x2B, 0x2D, 0x2E, 0x45, 0x65].contains($0)
      })
    else { return .null }
    if let integer = Int64(text) { return .int(integer) }
    if let unsigned = UInt64(text) { return .uint(unsigned) }
    return Double(text).map { QueryValue(finite: $0) } ?? .null
  }

  @Sendable private static func toString(_ value: QueryValue, _ context: EvaluationContext) -> QueryValue {
    switch value {
    case .string: return value
    case .bool, .int, .uint, .double:
      var text: [UInt8] = []
      do { try value.writeJSON(context.sharedKeys, into: &text) } catch { return context.fail(error) }
      return text.withUnsafeBytes { .string(context.arena.copy(TextSlice($0))) }
    default: return .null
    }
  }
}

extension String {
  /// The text without ASCII white space at its ends.
  fileprivate var trimmingWhitespace: Substring {
    let isSpace = { (byte: UInt8) in byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }
    guard let first = utf8.firstIndex(where: { !isSpace($0) }),
      let last = utf8.lastIndex(where: { !isSpace($0) })
    else { return "" }
    return self[first...last]
  }
}
