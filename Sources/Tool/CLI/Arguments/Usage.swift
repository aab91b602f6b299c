/// How a command is called. It is declared once, for parsing and for the help.
struct Usage: Sendable {
  /// The command's name, one or two words: `get`, `key show`.
  let name: String
  /// One line that says what the command does.
  let summary: String
  let positionals: [Positional]
  let options: [any NamedOption]
  /// Complete example calls.
  let examples: [String]
  /// More information: paragraphs, which an empty line separates.
  let notes: String

  init(
    _ name: String, _ summary: String, positionals: [Positional] = [], options: [any NamedOption] = [],
    examples: [String], notes: String = ""
  ) {
    self.name = name
    self.summary = summary
    self.positionals = positionals
    self.options = options
    self.examples = examples
    self.notes = notes
  }

  var words: [String] { name.split(separator: " ").map(String.init) }

  /// The call in one line: `touchstone get DB ID [options]`.
  var synopsis: String {
    var words = ["touchstone", name]
    for positional in positionals {
      switch positional.count {
      case .one: words.append(positional.name)
      case .optional: words.append("[\(positional.name)]")
      case .any: words.append("[\(positional.name)…]")
      case .many: words.append("\(positional.name)…")
      }
    }
    return (words + (options.isEmpty ? [] : ["[options]"])).joined(separator: " ")
  }

  /// The width of all help in characters.
  static let helpWidth = 80

  /// The arguments and options in the order of the help, as they are typed, and what they mean.
  var rows: [(name: String, help: String)] {
    positionals.map { ($0.name, $0.help) }
      + options.map { option in
        let letter = option.letter.map { "-\($0), " } ?? ""
        return ("\(letter)--\(option.name)" + (option.valuePlaceholder.map { " \($0)" } ?? ""), option.help)
      } + [("--help", "Shows this help")]
  }

  var help: String {
    var text = Self.paragraphs(summary) + "\n" + Style.output.bold("Usage:") + " \(synopsis)\n\n"
    text += Self.columns(rows, indent: 26)
    if !notes.isEmpty { text += "\n" + Self.paragraphs(notes) }
    return text + "\n" + Style.output.bold("Example:") + "\n" + examples.map(Self.example).joined()
  }

  /// Names, and beside them their meaning from column `indent` on. A long name has a line of its own.
  static func columns(_ rows: [(name: String, help: String)], indent: Int) -> String {
    var text = ""
    for (name, help) in rows {
      var lines = wrapped(help, to: helpWidth - indent)
      text += "  " + name
      if name.count + 4 <= indent {
        text += String(repeating: " ", count: indent - name.count - 2) + lines.removeFirst()
      }
      text += "\n"
      for line in lines { text += String(repeating: " ", count: indent) + line + "\n" }
    }
    return text
  }

  /// Paragraphs, which an empty line separates, in lines of the help's width.
  static func paragraphs(_ text: String) -> String {
    var paragraphs = [""]
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.isEmpty { paragraphs.append("") } else { paragraphs[paragraphs.count - 1] += line + " " }
    }
    return paragraphs.map { wrapped($0, to: helpWidth).map { $0 + "\n" }.joined() }.joined(separator: "\n")
  }

  /// An example. A long one continues on the next line, as a shell reads it.
  private static func example(_ call: String) -> String {
    var lines = [""]
    var isQuoted = false
    for word in call.split(separator: " ", omittingEmptySubsequences: false) {
      let last = lines[lines.count - 1]
      if last.isEmpty {
        lines[lines.count - 1] = String(word)
      } else if isQuoted || last.count + 1 + word.count + 6 <= helpWidth {
        lines[lines.count - 1] += " " + word
      } else {
        lines[lines.count - 1] += " \\"
        lines.append("  " + word)
      }
      if word.count(where: { $0 == "'" }) % 2 == 1 { isQuoted.toggle() }
    }
    return lines.map { "  \($0)\n" }.joined()
  }

  /// `text` in lines of at most `width` characters, broken at spaces. There is at least one line.
  static func wrapped(_ text: String, to width: Int) -> [String] {
    var lines = [""]
    for word in text.split(separator: " ") {
      let last = lines.count - 1
      if lines[last].isEmpty {
        lines[last] = String(word)
      } else if lines[last].count + 1 + word.count <= width {
        lines[last] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
