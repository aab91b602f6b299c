/// An error of the lexer or parser. It becomes a `QueryError` with a location.
struct SyntaxFault: Error {
  var code: QueryError.Code
  var message: String
  /// The offset in bytes from the start of the text.
  var offset: Int
}
