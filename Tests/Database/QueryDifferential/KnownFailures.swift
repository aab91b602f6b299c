import Query

/// What is known to fail and isn't mended yet. The list only shrinks; best it is empty.
package enum KnownFailures {
  /// A fault that is known.
  struct Fault: Sendable {
    /// What is wrong.
    var reason: String
    /// Whether a query has it.
    var concerns: @Sendable (SelectStatement) -> Bool
  }

  static let all: [Fault] = []

  /// Why a query may fail; nil when it may not.
  package static func reason(_ query: SelectStatement) -> String? { all.first { $0.concerns(query) }?.reason }
}
