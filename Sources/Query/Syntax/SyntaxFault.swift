/// What the lexer or the parser stumbled over: a `QueryError` before its place is put into words.
struct SyntaxFault: Error {
  var code: QueryError.Code
  var message: String
  /// Bytes from the start of the text.
  var offset: Int
}
