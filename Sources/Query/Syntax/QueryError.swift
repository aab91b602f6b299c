// What is wrong with a query, for a person: what, where in its text, and what was expected.

/// Why a query was refused or failed.
public struct QueryError: Error, Sendable, Equatable {
  /// What kind of mistake it is.
  public enum Code: String, Sendable, CaseIterable {
    /// The text isn't of the grammar (docs/query.md).
    case syntax
    /// Nested deeper than `Parser.depthLimit`.
    case tooDeep
    /// No function is called so.
    case unknownFunction
    /// A function with too few or too many arguments.
    case argumentCount
    /// A name that no source, alias or variable has.
    case unknownName
    /// Two columns or sources of one name.
    case duplicateName
    /// What the grammar allows and its meaning doesn't: an aggregate in WHERE, HAVING without GROUP BY.
    case invalidUse
    /// What others' N1QL has and this one hasn't.
    case unsupported
    /// No value was given for a parameter.
    case unsetParameter
    /// An index that isn't there, can't be made, or isn't of the kind that is asked for.
    case index
    /// A locale or options that text can't be ordered by.
    case collation
    /// A value that can't be computed, or isn't of the type that was asked for.
    case evaluation
    /// The query was cancelled.
    case cancelled
    /// The query took longer than its time limit.
    case timedOut
    /// A clause would keep more rows in memory than the query may (`Query.Options.memoryLimit`).
    case memoryLimit
    /// Results were read after their snapshot ended.
    case snapshotEnded
  }

  /// What kind of mistake it is.
  public let code: Code
  /// What was found, in one line without a place.
  public let message: String
  /// Where in the query's text, if it's known.
  public let location: QueryLocation?

  /// An error about a place in a query's text; without a position or a text it has no place.
  ///
  /// - Parameters:
  ///   - position: where in `text`, as the syntax tree tells it.
  ///   - text: the whole text of the query; nil for one that was built.
  public init(_ code: Code, _ message: String, at position: SourcePosition = .init(), in text: String? = nil)
  {
    self.code = code
    self.message = message
    location = position.offset.flatMap { offset in text.map { QueryLocation(offset: offset, in: $0) } }
  }

  /// The line, counted from 1, if the place is known.
  public var line: Int? { location?.line }
  /// The column in characters, counted from 1, if the place is known.
  public var column: Int? { location?.column }
}

extension QueryError: CustomStringConvertible {
  /// The message; with a place `line 1, column 8: …`, and below it the line with a caret.
  public var description: String {
    guard let location else { return message }
    return "line \(location.line), column \(location.column): \(message)\n\(location.excerpt)"
  }
}
