/// The reserved words. They are names only in backticks or after a dot.
enum ReservedWords {
  /// The words, in the order of `TokenKind`.
  static let all = [
    "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "COLLATE", "CROSS", "DESC", "DISTINCT", "ELSE", "END",
    "EVERY", "FALSE", "FROM", "GROUP", "HAVING", "IN", "INNER", "IS", "JOIN", "LEFT", "LIKE", "LIMIT",
    "MISSING",
    "NATURAL", "NOT", "NULL", "OFFSET", "ON", "OR", "ORDER", "OUTER", "RIGHT", "SATISFIES", "SELECT", "THEN",
    "TRUE", "UNNEST", "USING", "VALUED", "WHEN", "WHERE",
  ]

  static let longest = 9

  /// Names that have another meaning in some places. The printer puts them in backticks too.
  static let contextual: Set<String> = [
    "ALL", "SOME", "EXISTS", "EXPLAIN", "FULL", "KNOWN", "UNKNOWN", "RAW", "VALUE", "ELEMENT", "WITH",
    "UNION", "INTERSECT", "EXCEPT", "LET", "LETTING", "NEST", "USE", "KEY", "KEYS", "EXCLUDE", "LATERAL",
    "SET", "UNSET", "RETURNING", "ARRAY", "FIRST", "OBJECT",
  ]

  /// Words that begin a clause where an alias could be (`Parser.beginsClause`).
  static let clauseWords: Set<String> = [
    "UNION", "INTERSECT", "EXCEPT", "LET", "LETTING", "NEST", "USE", "EXCLUDE", "FULL", "SET", "UNSET",
    "RETURNING", "FETCH",
  ]

  /// A hash table of 256 slots. A word whose slot is taken uses the next free one.
  private static let table: [(key: UInt64, kind: TokenKind)] = {
    var table = [(key: UInt64, kind: TokenKind)](repeating: (0, .end), count: 256)
    for (index, word) in all.enumerated() {
      guard let kind = TokenKind(rawValue: TokenKind.and.rawValue + UInt8(index)) else { continue }
      let key = word.utf8.reduce(0 as UInt64, fold)
      var place = place(of: key)
      while table[place].key != 0 { place = (place + 1) & 255 }
      table[place] = (key, kind)
    }
    return table
  }()

  /// Adds a letter to a key, without its case. Each takes six bits, so ten letters fit.
  @inline(__always)
  private static func fold(_ key: UInt64, _ letter: UInt8) -> UInt64 {
    key << 6 | UInt64(letter & 0x1F | 0x20)
  }

  @inline(__always)
  private static func place(of key: UInt64) -> Int {
    Int(truncatingIfNeeded: (key &* 0x9E37_79B9_7F4A_7C15) >> 56)
  }

  /// The kind of the reserved word that these bytes spell, in any case. `.name` for other words.
  static func kind(of bytes: UnsafeBufferPointer<UInt8>, from start: Int, to end: Int) -> TokenKind {
    guard end - start <= longest else { return .name }
    var key: UInt64 = 0
    for index in start..<end {
      let byte = bytes[index]
      guard byte & 0x40 != 0, byte != UInt8(ascii: "_") else { return .name }
      key = fold(key, byte)
    }
    var place = place(of: key)
    while true {
      let entry = table[place]
      if entry.key == key { return entry.kind }
      if entry.key == 0 { return .name }
      place = (place + 1) & 255
    }
  }

  /// Whether a name always needs backticks.
  static func mustBeQuoted(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { bytes in
      guard let first = bytes.first, Lexer.isNameStart(first), bytes.allSatisfy(Lexer.isNamePart) else {
        return true
      }
      if kind(of: bytes, from: 0, to: bytes.count) != .name { return true }
      guard bytes.count <= longest else { return false }
      return contextual.contains(String(decoding: bytes, as: UTF8.self).uppercased())
    }
  }
}
