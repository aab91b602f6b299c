import Query
import Touchstone

/// A command of the shell: a line that begins with a dot.
struct ShellDotCommand: Sendable {
  /// What completes its argument.
  enum Completion: Sendable {
    case none, commands, properties, files
    case words([String])
  }

  let name: String
  /// The arguments in the help: `on|off`.
  let arguments: String
  let help: String
  let completion: Completion
  /// Whether the rest of the line is one argument, with its quotes and blanks.
  let takesLine: Bool
  let run: @Sendable (Shell, [String]) throws -> Void

  init(
    _ name: String, _ arguments: String, _ help: String, completion: Completion = .none,
    takesLine: Bool = false,
    run: @escaping @Sendable (Shell, [String]) throws -> Void
  ) {
    self.name = name
    self.arguments = arguments
    self.help = help
    self.completion = completion
    self.takesLine = takesLine
    self.run = run
  }

  /// The call: `.timer on|off`.
  var synopsis: String { arguments.isEmpty ? ".\(name)" : ".\(name) \(arguments)" }
}

/// The commands of the shell.
enum ShellCommands {
  static let all: [ShellDotCommand] = [
    ShellDotCommand("engine", "", "Shows the engine and its library") { shell, words in
      try none(words)
      try shell.output.line("\(shell.database.engineName) (\(shell.database.engineLibrary))")
    },
    ShellDotCommand(
      "explain", "on|off", "Shows the plan of each query before its rows", completion: .words(["on", "off"])
    ) { shell, words in shell.explains = try isOn(words, shell.explains) },
    ShellDotCommand("help", "[COMMAND]", "Shows these commands", completion: .commands) {
      shell, words in
      try help(words, shell.output)
    },
    ShellDotCommand("indexes", "", "Lists the indexes") { shell, words in
      try none(words)
      try IndexCommand.list(shell.database, asJSON: shell.format == .json, to: shell.output)
    },
    ShellDotCommand("info", "", "Shows counts, identifiers and files of the database") { shell, words in
      try none(words)
      try InfoCommand.show(shell.database, asJSON: shell.format == .json, to: shell.output)
    },
    ShellDotCommand(
      "mode", RowFormat.allCases.map(\.rawValue).joined(separator: "|"), "Chooses how rows are printed",
      completion: .words(RowFormat.allCases.map(\.rawValue))
    ) { shell, words in
      guard words.count == 1, let format = RowFormat(rawValue: words[0]) else {
        throw UsageError(".mode needs table, json, csv or line; it is \(shell.format.rawValue)")
      }
      shell.format = format
    },
    ShellDotCommand(
      "once", "FILE", "Writes what the next statement shows to a file", completion: .files
    ) { shell, words in
      try shell.write(to: file(words, of: ".once"), once: true)
    },
    ShellDotCommand(
      "output", "[FILE]", "Writes what follows to a file, or here again", completion: .files
    ) { shell, words in
      try shell.write(to: words.isEmpty ? nil : file(words, of: ".output"))
    },
    ShellDotCommand(
      "param", "[NAME=VALUE|clear]", "Sets the value of $NAME: JSON, otherwise a string; or lists all",
      completion: .words(["clear"]), takesLine: true
    ) { shell, words in try parameter(words.first, shell) },
    ShellDotCommand("quit", "", "Ends the shell") { shell, words in
      try none(words)
      shell.isEnded = true
    },
    ShellDotCommand("read", "FILE", "Runs the statements of a file", completion: .files) { shell, words in
      guard words.count == 1 else { throw UsageError(".read needs the name of a file") }
      try shell.read(words[0])
    },
    ShellDotCommand(
      "schema", "[PROPERTY]", "Shows the properties of a sample of documents, and their types",
      completion: .properties
    ) { shell, words in
      guard words.count <= 1 else { throw UsageError(".schema takes one property") }
      let schema = try SampledSchema(of: shell.database) { shell.signals.isInterrupted }
      try schema.print(below: words.first, asJSON: shell.format == .json, to: shell.output)
    },
    ShellDotCommand(
      "timer", "on|off", "Shows how long each query takes", completion: .words(["on", "off"])
    ) { shell, words in shell.showsTime = try isOn(words, shell.showsTime) },
  ]

  /// Runs a line such as `.mode csv`.
  static func run(_ line: String, in shell: Shell) throws {
    let text = line.dropFirst().drop(while: \.isWhitespace)
    let word = text.prefix { !$0.isWhitespace }
    guard !word.isEmpty else { return try help([], shell.output) }
    // What other shells call it.
    let known = ["exit": "quit", "q": "quit", "h": "help"][word] ?? String(word)
    let command = try find(known)
    var rest = text[word.endIndex...].drop(while: \.isWhitespace)
    while rest.last?.isWhitespace ?? false { rest.removeLast() }
    if command.takesLine { return try command.run(shell, rest.isEmpty ? [] : [String(rest)]) }
    try command.run(shell, split(rest))
  }

  /// The line, or the command that a person means who types `help`, `quit` or `exit` where a query could begin.
  static func spelled(_ line: String) -> String {
    let word = line.trimming { "; \t".contains($0) }.lowercased()
    return ["help", "quit", "exit"].contains(word) ? "." + word : line
  }

  /// What other shells have commands for.
  private static let elsewhere = [
    "tables": "a database has documents and no tables; .schema shows their properties",
    "databases": ".info shows the database",
    "indices": "it is called .indexes",
    "headers": ".mode chooses how rows are printed",
    "dump": "'touchstone export DB' writes all documents",
    "import": "'touchstone import DB FILE' saves the documents of a file",
    "open": "'touchstone shell DB' opens another database",
  ]

  private static func find(_ name: String) throws -> ShellDotCommand {
    guard let command = all.first(where: { $0.name == name }) else {
      if let hint = elsewhere[name] { throw UsageError("there is no command .\(name); \(hint)") }
      let hint = Suggestions.hint(for: name, among: all.map(\.name))
      throw UsageError("there is no command .\(name)\(hint); .help lists all commands")
    }
    return command
  }

  private static func help(_ words: [String], _ output: StandardOutput) throws {
    let shown =
      try words.isEmpty ? all : words.map { try find($0.first == "." ? String($0.dropFirst()) : $0) }
    for command in shown { try output.line(TextTable.padded(command.synopsis, to: 30) + command.help) }
    guard words.isEmpty else { return }
    try output.line("A query ends with a semicolon, and may have several lines. Ctrl-C stops it.")
  }

  private static func none(_ words: [String]) throws {
    if let extra = words.first { throw UsageError("unexpected argument '\(extra)'") }
  }

  /// The name of a file to write. Other shells take a program after `|`.
  private static func file(_ words: [String], of command: String) throws -> String {
    guard words.first?.first != "|" else {
      throw UsageError("\(command) takes no program; 'touchstone query DB QUERY | PROGRAM' does that")
    }
    guard words.count == 1 else { throw UsageError("\(command) needs the name of one file") }
    return words[0]
  }

  /// The value of `on` or `off`; without one, the opposite of what is set.
  private static func isOn(_ words: [String], _ current: Bool) throws -> Bool {
    switch words {
    case ["on"]: return true
    case ["off"]: return false
    default: throw UsageError("it needs on or off; it is \(current ? "on" : "off")")
    }
  }

  private static func parameter(_ text: String?, _ shell: Shell) throws {
    switch text {
    case nil:
      for (name, value) in shell.parameters.sorted(by: { $0.key < $1.key }) {
        try shell.output.line("$\(name) = \(value)")
      }
    case "clear": shell.parameters = [:]
    case let text?:
      let parameter = try QueryParameter(text)
      shell.parameters[parameter.name] = parameter.value
    }
  }

  /// The words of a line. Quotes keep blanks inside of a word that begins with them.
  static func split(_ line: some StringProtocol) throws -> [String] {
    var words: [String] = []
    var word: String?
    var quote: Character?
    for character in line {
      if let open = quote {
        if character == open { quote = nil } else { word?.append(character) }
      } else if word == nil, character == "'" || character == "\"" {
        quote = character
        word = ""
      } else if character.isWhitespace {
        if let word { words.append(word) }
        word = nil
      } else {
        word = (word ?? "") + String(character)
      }
    }
    guard quote == nil else { throw UsageError("a quote has no end") }
    return words + (word.map { [$0] } ?? [])
  }
}
