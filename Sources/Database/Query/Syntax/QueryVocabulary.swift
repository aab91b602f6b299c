/// The words of the query language, for tools that complete what is typed.
package enum QueryVocabulary {
  /// The version of the language, which VERSION() returns. It grows when the grammar or the meaning of a query
  /// changes.
  static let version: StaticString = "1.0-SQL++"

  /// The words of the grammar in upper case, in order: reserved ones, and those with a meaning in some places.
  package static var keywords: [String] {
    (ReservedWords.all + ReservedWords.contextual + ["ANALYZE", "META"]).sorted()
  }

  /// The names of the functions in upper case, in order. Alternative names are left out.
  package static var functions: [String] { QueryFunction.all.keys.sorted() }

  /// Whether `text` is a name that needs backticks in a query.
  package static func mustBeQuoted(_ text: String) -> Bool { ReservedWords.mustBeQuoted(text) }
}
