/// The window functions. Raw values are their names.
enum WindowFunctionKind: String, CaseIterable, Sendable {
  case rowNumber = "ROW_NUMBER"
  case rank = "RANK"
  case denseRank = "DENSE_RANK"
  case percentRank = "PERCENT_RANK"
  case cumulativeDistribution = "CUME_DIST"
  case tile = "NTILE"
  case lag = "LAG"
  case lead = "LEAD"
  case firstValue = "FIRST_VALUE"
  case lastValue = "LAST_VALUE"
  case nthValue = "NTH_VALUE"
  case ratioToReport = "RATIO_TO_REPORT"

  /// The numbers of arguments.
  var arguments: ClosedRange<Int> {
    switch self {
    case .rowNumber, .rank, .denseRank, .percentRank, .cumulativeDistribution: 0...0
    case .tile, .firstValue, .lastValue, .ratioToReport: 1...1
    case .nthValue: 2...2
    case .lag, .lead: 1...3
    }
  }

  /// Whether it can have RESPECT NULLS and IGNORE NULLS.
  var takesNulls: Bool {
    switch self {
    case .lag, .lead, .firstValue, .lastValue, .nthValue: true
    default: false
    }
  }

  /// Whether its window can have a frame.
  var takesFrame: Bool {
    switch self {
    case .firstValue, .lastValue, .nthValue, .ratioToReport: true
    default: false
    }
  }

  /// Whether its window has to have an ORDER BY.
  var needsOrder: Bool { !takesFrame && self != .rowNumber }
}
