import Fleece

/// A statement as somebody gave it, parsed once to see what it does. Who runs it takes the text, whose mistakes are reported then.
package struct GivenStatement: Sendable {
  package let text: String
  /// The values of its parameters.
  package let parameters: [String: JSONValue]
  /// Nil for a text with a mistake.
  private let statement: QueryStatement?

  package init(_ text: String, _ parameters: [String: JSONValue] = [:]) {
    self.text = text
    self.parameters = parameters
    statement = try? QueryStatement(parsing: text)
  }

  /// Whether it changes documents or indexes. False for a text with a mistake.
  package var changes: Bool {
    switch statement {
    case .change, .index: true
    default: false
    }
  }

  /// The statement about indexes that it is; nil for others.
  package var index: IndexStatement? { if case .index(let index)? = statement { index } else { nil } }

  /// The statement that PREPARE names; nil for others.
  package var prepared: GivenStatement? {
    if case .prepare(_, _, let inner)? = statement { GivenStatement(inner.description) } else { nil }
  }

  /// What EXECUTE names, and its values; nil for others.
  var execution: (name: SourceName, values: QueryExpression?)? {
    if case .execute(let name, let using)? = statement { (name, using) } else { nil }
  }
}
