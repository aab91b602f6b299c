// Errors in queries, for people: what is wrong, where in the text, and what was expected.

/// The reason why a query was refused or failed.
public struct QueryError: Error, Sendable, Equatable {
  /// The kind of an error.
  public enum Code: String, Sendable, CaseIterable {
    /// The text doesn't follow the grammar (docs/query.md).
    case syntax
    /// The query is nested deeper than `Parser.depthLimit`.
    case tooDeep
    /// The query has more words, sources or expressions than a query may have (docs/query.md, "Limits").
    case tooLarge
    /// There is no function of this name.
    case unknownFunction
    /// A function call has too few or too many arguments.
    case argumentCount
    /// No source, alias or variable has this name.
    case unknownName
    /// Two columns or two sources have the same name.
    case duplicateName
    /// The grammar allows it, but it has no meaning here: an aggregate in WHERE, HAVING without GROUP BY.
    case invalidUse
    /// A feature of other N1QL implementations that this one doesn't have.
    case unsupported
    /// A parameter has no value.
    case unsetParameter
    /// An index doesn't exist, can't be created, or isn't of the required kind.
    case index
    /// Text can't be ordered by this locale or these options.
    case collation
    /// A value can't be computed, or has the wrong type.
    case evaluation
    /// The query was cancelled.
    case cancelled
    /// The query took longer than its time limit.
    case timedOut
    /// A clause would keep more rows in memory than the limit allows (`Query.Options.memoryLimit`).
    case memoryLimit
    /// Other queries have the memory, or the temporary files, that all of a server share. The same run may succeed later.
    case memoryBusy
    /// A run needs larger temporary files than the limit allows (`Query.Options.temporaryFileLimit`).
    case diskLimit
    /// The query has more rows than the limit allows (`Query.Options.rowLimit`).
    case rowLimit
    /// Results were read after their snapshot ended.
    case snapshotEnded
  }

  /// The kind of the error.
  public let code: Code
  /// A description on one line, without the position.
  public let message: String
  /// The position in the query's text, if it is known.
  public let location: QueryLocation?

  /// Creates an error. Without a position or a text, it has no location.
  ///
  /// - Parameters:
  ///   - position: the position in `text`, from the syntax tree.
  ///   - text: the whole text of the query. Nil for a query that was built.
  package init(_ code: Code, _ message: String, at position: SourcePosition = .init(), in text: String? = nil)
  {
    self.code = code
    self.message = message
    location = position.offset.flatMap { offset in text.map { QueryLocation(offset: offset, in: $0) } }
  }

  /// The line, counted from 1, if the location is known.
  public var line: Int? { location?.line }
  /// The column in characters, counted from 1, if the location is known.
  public var column: Int? { location?.column }
}

extension QueryError: CustomStringConvertible {
  /// The message. With a location it begins with `line 1, column 8: …`, and the line with a caret follows.
  public var description: String {
    guard let location else { return message }
    return "line \(location.line), column \(location.column): \(message)\n\(location.excerpt)"
  }
}
