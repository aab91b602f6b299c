import Query
import Suites
import Touchstone

/// A file of queries for `bench mine` and `advise`, as plain text.
///
///     file      = *( directive / comment / statement )
///     statement = query ";"                        ; the last one needs no semicolon
///     directive = "--" word ":" text               ; on a line of its own, before the query that it belongs to
///     word      = "name" / "index" / "fulltext" / "param"
///     name      = text without commas
///     index     = [ NAME "ON" ] EXPR *( "," EXPR ) [ "UNNEST" ARRAY "AS" ITEM ] [ "WHERE" EXPR ]
///     fulltext  = NAME "ON" EXPR *( "," EXPR ) [ "LANGUAGE" LANG ] [ "WHERE" EXPR ]
///     param     = [ "$" ] NAME "=" ( JSON / text )
///
/// A query without a name is `query-N`, by its number. An index without a name gets one from what it indexes. Other comments mean
/// nothing.
struct QueryFile {
  let queries: [NamedQuery]
  /// The whole text.
  let text: String

  /// Reads the file at `path`, or standard input if it is `-`. Throws a `UsageError` with the file, the line and the fault.
  init(path: String) throws {
    let name = path == "-" ? "standard input" : path
    guard let text = String(validating: try InputFile.bytes(path), as: UTF8.self) else {
      throw UsageError("\(name): the file isn't UTF-8")
    }
    try self.init(text, name: name)
  }

  /// Parses the text of a file. `name` is the name of the file in errors.
  init(_ text: String, name: String) throws {
    self.text = text
    var parser = Parser(name)
    let text = text.hasPrefix("\u{FEFF}") ? text.dropFirst() : text[...]
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      try parser.add(String(line.last == "\r" ? line.dropLast() : line))
    }
    queries = try parser.end()
  }

  private struct Parser {
    private let file: String
    private var reader = StatementReader()
    private var line = 0
    private var queries: [NamedQuery] = []
    private var indexes: [String: (index: WantedIndex, line: Int)] = [:]
    // What has been said about the next query.
    private var name: String?
    private var parameters: [String: JSONValue] = [:]
    private var wanted: [WantedIndex] = []
    private var lastDirective: Int?

    init(_ file: String) { self.file = file }

    mutating func add(_ text: String) throws {
      line += 1
      if !reader.isInside, let (word, value) = try directive(text) {
        lastDirective = line
        try add(word, value)
      }
      for statement in reader.add(text) { try add(statement) }
    }

    mutating func end() throws -> [NamedQuery] {
      if let statement = reader.end() { try add(statement) }
      if let lastDirective, name != nil || !wanted.isEmpty || !parameters.isEmpty {
        throw fault("no query follows this comment", at: lastDirective)
      }
      guard !queries.isEmpty else {
        throw UsageError(
          "\(file): there are no queries; write SELECT statements that end with semicolons, each after a comment "
            + "'-- name: NAME'")
      }
      return queries
    }

    private func fault(_ message: String, at line: Int? = nil) -> UsageError {
      UsageError("\(file): line \(line ?? self.line): \(message)")
    }

    // MARK: Directives

    private static let words = ["name", "index", "fulltext", "param"]

    /// The word and the text of a directive. Nil for other lines. Throws for a comment that is nearly one.
    private func directive(_ text: String) throws -> (word: String, value: String)? {
      guard let found = text.wholeMatch(of: /\s*--\s*([A-Za-z]+)\s*:\s*(.*?)\s*/) else { return nil }
      let word = found.1.lowercased()
      if Self.words.contains(word) { return (word, String(found.2)) }
      if let near = Suggestions.nearest(to: word, among: Self.words).first {
        throw fault("there is no '\(word):' (did you mean \(near):?)")
      }
      return nil
    }

    private mutating func add(_ word: String, _ value: String) throws {
      guard !value.isEmpty else { throw fault("there is nothing after '\(word):'") }
      switch word {
      case "name":
        guard name == nil else { throw fault("the query has a name already, '\(name ?? "")'") }
        guard !value.contains(","), value != "mix" else {
          throw fault(value == "mix" ? "a query can't have the name 'mix'" : "a name can't contain a comma")
        }
        guard !queries.contains(where: { $0.name == value }) else {
          throw fault("another query has the name '\(value)'")
        }
        name = value
      case "param":
        do {
          let parameter = try QueryParameter(value.replacing(/\s*=\s*/, with: "=", maxReplacements: 1))
          parameters[parameter.name] = parameter.value
        } catch let error as UsageError { throw fault(error.message) }
      default:
        let index: WantedIndex
        do { index = try IndexText(value).index(isFullText: word == "fulltext") } catch let error
          as QueryError
        {
          throw fault(error.message)
        } catch let error as UsageError { throw fault(error.message) }
        if let other = indexes[index.name], other.index != index {
          throw fault("line \(other.line) has another index with the name '\(index.name)'")
        }
        indexes[index.name] = (index, line)
        if !wanted.contains(index) { wanted.append(index) }
      }
    }

    // MARK: Queries

    private mutating func add(_ statement: ShellStatement) throws {
      guard statement.kind == .query else {
        throw fault("'\(statement.text)' is a command of the shell, not a query", at: statement.line)
      }
      do {
        let query = try SelectStatement(parsing: statement.text)
        if let missing = query.parameterNames.first(where: { parameters[$0] == nil }) {
          throw fault(
            "the parameter $\(missing) has no value; write it before the query: '-- param: \(missing) = VALUE'",
            at: statement.line)
        }
      } catch let error as QueryError {
        throw fault(error.message, at: statement.line + (error.line ?? 1) - 1)
      }
      let name = name ?? "query-\(queries.count + 1)"
      queries.append(
        NamedQuery(name: name, text: statement.text, parameters: parameters, indexes: wanted))
      (self.name, parameters, wanted, lastDirective) = (nil, [:], [], nil)
    }
  }
}

/// The parts of an index as a directive writes it.
struct IndexText {
  private var name: String?
  private var expressions: [String] = []
  /// What follows UNNEST, LANGUAGE and WHERE.
  private var clauses: [String: String] = [:]

  /// Cuts the text at commas and at words that aren't inside quotes or brackets.
  init(_ text: String) throws {
    var pieces = [(word: "", text: "")]
    var depth = 0
    var quote: Character?
    var rest = text[...]
    while let character = rest.first {
      if quote == nil, depth == 0, let word = Self.keyword(rest, after: pieces[pieces.count - 1].text) {
        if word == "WHERE" {
          pieces.append((word, String(rest.dropFirst(word.count))))
          break
        }
        pieces.append((word, ""))
        rest = rest.dropFirst(word.count)
        continue
      }
      rest = rest.dropFirst()
      if let open = quote {
        if character == open { quote = nil }
      } else if "'\"`".contains(character) {
        quote = character
      } else if "([{".contains(character) {
        depth += 1
      } else if ")]}".contains(character) {
        depth -= 1
      } else if character == ",", depth == 0 {
        pieces.append((",", ""))
        continue
      }
      pieces[pieces.count - 1].text.append(character)
    }
    for (number, piece) in pieces.enumerated() {
      let text = piece.text.trimmingPrefix(while: \.isWhitespace).reversed().drop(while: \.isWhitespace)
      let trimmed = String(text.reversed())
      switch piece.word {
      case "", ",":
        // Before ON there is the name.
        if number == 0, pieces.count > 1, pieces[1].word == "ON" {
          name = trimmed.trimmingQuotes
        } else if !trimmed.isEmpty || piece.word == "," {
          expressions.append(trimmed)
        }
      case "ON":
        guard number == 1 else { throw UsageError("ON belongs after the name of the index") }
        expressions.append(trimmed)
      default:
        guard clauses.updateValue(trimmed, forKey: piece.word) == nil else {
          throw UsageError("\(piece.word) occurs twice")
        }
      }
    }
    guard !expressions.contains("") else { throw UsageError("an expression of the index is missing") }
  }

  private static let keywords = ["ON", "UNNEST", "LANGUAGE", "WHERE"]

  /// The keyword that the rest begins with, if it is a word of its own.
  private static func keyword(_ rest: Substring, after before: String) -> String? {
    func isInName(_ character: Character?) -> Bool {
      character.map { $0.isLetter || $0.isNumber || "_.$".contains($0) } ?? false
    }
    guard !isInName(before.last) else { return nil }
    return keywords.first { word in
      rest.prefix(word.count).uppercased() == word && !isInName(rest.dropFirst(word.count).first)
    }
  }

  /// The index. Throws a `QueryError` or a `UsageError` for what can't be indexed.
  func index(isFullText: Bool) throws -> WantedIndex {
    if isFullText {
      guard clauses["UNNEST"] == nil else { throw UsageError("a full-text index has no UNNEST") }
      guard let name else {
        throw UsageError("a full-text index needs a name, for MATCH: fulltext: NAME ON EXPR, …")
      }
      var options = TextAnalysisOptions()
      if let text = clauses["LANGUAGE"] {
        guard let language = FullTextLanguage(text) else {
          throw UsageError("there is no language '\(text)'")
        }
        options = TextAnalysisOptions(language: language)
      }
      let definition = try FullTextIndexDefinition(expressions, where: clauses["WHERE"], options: options)
      try definition.check()
      return WantedIndex(name: name, .fullText(definition))
    }
    guard clauses["LANGUAGE"] == nil else { throw UsageError("LANGUAGE belongs to fulltext:") }
    let definition = try ValueIndexDefinition(
      expressions, where: clauses["WHERE"], unnest: clauses["UNNEST"])
    try definition.check()
    return WantedIndex(name: name ?? definition.text, .value(definition))
  }
}

extension String {
  /// Without quotes around it.
  fileprivate var trimmingQuotes: String {
    guard count > 1, let first, first == last, "'\"`".contains(first) else { return self }
    return String(dropFirst().dropLast())
  }
}
