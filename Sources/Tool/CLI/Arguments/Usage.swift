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
  /// More information, in lines of at most 90 columns.
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

  var help: String {
    var text = "\(summary)\n\nUsage: \(synopsis)\n"
    let optionRows = options.map { option in
      [
        (option.letter.map { "-\($0), " } ?? "") + "--\(option.name)"
          + (option.valuePlaceholder.map { " \($0)" } ?? ""), option.help,
      ]
    }
    let rows = positionals.map { [$0.name, $0.help] } + optionRows + [["--help", "Shows this help"]]
    text += "\n"
    for row in rows {
      // Longer text continues on the next lines, in the same column.
      let lines = Self.wrapped(row[1], to: 80)
      text += "  " + TextTable.padded(row[0], to: 24) + lines[0] + "\n"
      for line in lines.dropFirst() { text += String(repeating: " ", count: 26) + line + "\n" }
    }
    if !notes.isEmpty { text += "\n\(notes)\n" }
    text += "\nExample:\n" + examples.map { "  \($0)\n" }.joined()
    return text
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
