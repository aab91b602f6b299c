// The syntax tree of a call.

/// A function call: `NAME(arguments)` or `NAME(DISTINCT e)`. `COUNT(*)` has the single argument
/// `.star(source: nil)`.
public struct FunctionCall: Hashable, Sendable {
  /// The function's main name in upper case. For example, IS_ARRAY is stored as ISARRAY
  /// (`QueryFunction`).
  public var name: String
  /// Whether an aggregate uses each different value once.
  public var isDistinct: Bool
  /// The arguments, in order.
  public var arguments: [QueryExpression]
  /// The position of the name.
  public var position: SourcePosition
  private var rows: Rows?

  /// The rows over which a function is computed. Few calls have them, so they lie outside of the call. Calls are
  /// copied in the frames of all functions that walk a tree, and those stay small.
  private indirect enum Rows: Hashable {
    case rows(filter: QueryExpression?, WindowCall?)
  }

  /// The condition of an aggregate's `FILTER (WHERE …)`. Rows that don't meet it don't count.
  public var filter: QueryExpression? {
    get {
      if case .rows(let filter, _) = rows { filter } else { nil }
    }
    set { set(newValue, window) }
  }

  /// The window of a window function, or of an aggregate over a window. Nil for other calls.
  public var window: WindowCall? {
    get {
      if case .rows(_, let window) = rows { window } else { nil }
    }
    set { set(filter, newValue) }
  }

  /// Whether it has FILTER or OVER.
  var namesRows: Bool { rows != nil }

  /// Creates a call.
  public init(
    _ name: String, _ arguments: [QueryExpression], isDistinct: Bool = false, filter: QueryExpression? = nil,
    window: WindowCall? = nil, position: SourcePosition = SourcePosition()
  ) {
    self.name = name
    self.isDistinct = isDistinct
    self.arguments = arguments
    self.position = position
    set(filter, window)
  }

  private mutating func set(_ filter: QueryExpression?, _ window: WindowCall?) {
    rows = filter == nil && window == nil ? nil : .rows(filter: filter, window)
  }

  // Apart from the functions that walk trees, as its frame is large.

  /// Calls `body` with each part of FILTER and OVER.
  @inline(never)
  func forEachPartOfRows(_ body: (QueryExpression) throws -> Void) rethrows {
    if let filter { try body(filter) }
    for part in window?.definition.parts ?? [] { try body(part) }
  }

  /// Replaces each part of FILTER and OVER.
  @inline(never)
  mutating func mapPartsOfRows(_ body: (QueryExpression) throws -> QueryExpression) rethrows {
    let filter = try filter.map(body)
    var window = window
    if let definition = window?.definition { window?.definition = try definition.mapping(body) }
    set(filter, window)
  }
}
