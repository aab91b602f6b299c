/// A word, number, string or sign of a query's text.
struct Token: BitwiseCopyable {
  var kind: TokenKind
  /// Whether a string or a quoted name contains doubled quotes.
  var hasEscapes = false
  /// The offset in bytes from the start of the text. Quotes, backticks and a parameter's `$` are part of the
  /// token.
  var start: Int
  var end: Int
}

/// The kind of a token. Words that aren't reserved, such as META and SOME, are names.
enum TokenKind: UInt8 {
  case end
  case name, quotedName, parameter, string, integer, float
  case leftParenthesis, rightParenthesis, leftBracket, rightBracket, leftBrace, rightBrace
  case comma, colon, semicolon, dot, question
  case plus, minus, star, slash, percent, concatenate
  case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
  /// `<<`, `>>`, `&`, `|`: part of the original's grammar, but without a meaning there too.
  case bitOperator
  // Reserved words, in the order of `ReservedWords.all`.
  case and, any, `as`, asc, between, by, `case`, collate, cross, desc, distinct, `else`, endWord, every,
    `false`
  case from, group, having, `in`, inner, `is`, join, left, like, limit, missing, natural, not, null, offset,
    on
  case or, order, outer, right, satisfies, select, then, `true`, unnest, using, valued, when, `where`

  var isReservedWord: Bool { rawValue >= TokenKind.and.rawValue }
}
