// The syntax trees of windows.

import Storage

/// The window of a call: `[FROM FIRST | FROM LAST] [RESPECT NULLS | IGNORE NULLS] OVER window`.
public struct WindowCall: Hashable, Sendable {
  /// The window.
  public var definition: WindowDefinition
  /// Whether NTH_VALUE counts from the last row of the frame.
  public var countsFromLast: Bool
  /// Whether rows with an unknown value are left out.
  public var ignoresNulls: Bool

  /// Creates the window of a call.
  public init(_ definition: WindowDefinition, countsFromLast: Bool = false, ignoresNulls: Bool = false) {
    self.definition = definition
    self.countsFromLast = countsFromLast
    self.ignoresNulls = ignoresNulls
  }
}

/// A window: `[name] [PARTITION BY …] [ORDER BY …] [frame]`.
public struct WindowDefinition: Hashable, Sendable {
  /// The name of a window of the WINDOW clause, which this one extends.
  public var base: ByteString?
  /// The expressions that have equal values in the rows of one partition.
  public var partitionBy: [QueryExpression]
  /// The order of rows in a partition.
  public var orderBy: [Ordering]
  /// The frame. Nil for the default: all rows without ORDER BY, else those up to the last peer of the current row.
  public var frame: WindowFrame?

  /// Creates a window.
  public init(
    _ base: String? = nil, partitionBy: [QueryExpression] = [], orderBy: [Ordering] = [],
    frame: WindowFrame? = nil
  ) {
    self.base = base.map { ByteString($0) }
    self.partitionBy = partitionBy
    self.orderBy = orderBy
    self.frame = frame
  }

  /// The expressions in it.
  var parts: [QueryExpression] { partitionBy + orderBy.map(\.expression) + (frame?.parts ?? []) }

  /// A copy in which `body` has replaced each expression.
  func mapping(_ body: (QueryExpression) throws -> QueryExpression) rethrows -> WindowDefinition {
    var copy = self
    copy.partitionBy = try partitionBy.map(body)
    copy.orderBy = try orderBy.map {
      var ordering = $0
      ordering.expression = try body($0.expression)
      return ordering
    }
    if let frame {
      copy.frame?.start = try frame.start.mapping(body)
      copy.frame?.end = try frame.end.mapping(body)
    }
    return copy
  }
}

/// The rows of a partition that a function sees from the current row.
public struct WindowFrame: Hashable, Sendable {
  /// What the bounds count.
  public enum Unit: String, Hashable, Sendable, CaseIterable {
    /// Rows.
    case rows = "ROWS"
    /// Differences of the value of ORDER BY, which has one term then.
    case range = "RANGE"
    /// Groups of rows that ORDER BY doesn't tell apart.
    case groups = "GROUPS"
  }

  /// A bound.
  public enum Bound: Hashable, Sendable {
    case unboundedPreceding
    case preceding(QueryExpression)
    /// The current row, or for RANGE and GROUPS its peers.
    case currentRow
    case following(QueryExpression)
    case unboundedFollowing

    var offset: QueryExpression? {
      switch self {
      case .preceding(let offset), .following(let offset): offset
      default: nil
      }
    }

    func mapping(_ body: (QueryExpression) throws -> QueryExpression) rethrows -> Bound {
      switch self {
      case .preceding(let offset): .preceding(try body(offset))
      case .following(let offset): .following(try body(offset))
      default: self
      }
    }

    /// The position among the kinds of bounds. The end of a frame isn't before its start.
    var rank: Int {
      switch self {
      case .unboundedPreceding: 0
      case .preceding: 1
      case .currentRow: 2
      case .following: 3
      case .unboundedFollowing: 4
      }
    }
  }

  /// Rows that are left out of the frame.
  public enum Exclusion: String, Hashable, Sendable, CaseIterable {
    case noOthers = "NO OTHERS"
    case currentRow = "CURRENT ROW"
    /// The current row and its peers.
    case group = "GROUP"
    /// The peers of the current row.
    case ties = "TIES"
  }

  /// What the bounds count.
  public var unit: Unit
  /// The first bound.
  public var start: Bound
  /// The last bound.
  public var end: Bound
  /// Rows that are left out.
  public var exclusion: Exclusion

  /// Creates a frame.
  public init(
    _ unit: Unit, from start: Bound, to end: Bound = .currentRow, excluding exclusion: Exclusion = .noOthers
  ) {
    self.unit = unit
    self.start = start
    self.end = end
    self.exclusion = exclusion
  }

  var parts: [QueryExpression] { [start.offset, end.offset].compactMap { $0 } }
}

/// A window of the WINDOW clause: `name AS (definition)`.
public struct NamedWindow: Hashable, Sendable {
  /// The name.
  public var name: ByteString
  /// The window.
  public var definition: WindowDefinition
  /// The position of the name.
  public var position: SourcePosition

  /// Creates a named window.
  public init(_ name: String, _ definition: WindowDefinition) {
    self.init(ByteString(name), definition)
  }

  init(_ name: ByteString, _ definition: WindowDefinition, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.definition = definition
    self.position = position
  }
}

/// Where NULLS FIRST and NULLS LAST put null and missing values.
public enum NullsOrder: String, Hashable, Sendable, CaseIterable {
  case first = "FIRST"
  case last = "LAST"
}

extension Ordering {
  /// The terms by which rows are ordered: with NULLS FIRST or LAST out of the ordinary, whether a value is known
  /// comes before the value.
  var terms: [Ordering] {
    var plain = self
    plain.nulls = nil
    guard let nulls, (nulls == .first) == isDescending else { return [plain] }
    let known = QueryExpression.test(expression.uncollated.operand, .valued, negated: false)
    return [Ordering(known, isDescending: nulls == .last), plain]
  }
}
