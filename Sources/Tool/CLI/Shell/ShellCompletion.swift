import BenchmarkKit
import FoundationEssentials
import Query

/// Completes what is typed in the shell: words of the language, functions, properties, and the shell's own commands.
final class ShellCompletion {
  /// Whether earlier lines have begun a query. Then a dot at the beginning is no command.
  var isInsideStatement = false
  private let readProperties: () -> [String]
  // What can't be typed isn't offered: documents of others may have control characters in names, which a terminal would obey.
  private lazy var properties = readProperties().filter { TerminalText.escapedLine($0) == $0 }

  /// `properties` returns the paths of the documents' properties. It is called for the first completion.
  init(properties: @escaping () -> [String]) { readProperties = properties }

  /// What a completion gives: text to insert at the cursor, and choices to show if there are several.
  struct Found: Equatable {
    var insertion = ""
    var choices: [String] = []
  }

  /// Completes the last word of `text`, which ends at the cursor.
  func complete(_ text: String) -> Found {
    if !isInsideStatement, text.hasPrefix(".") { return completeCommand(text) }
    guard !Self.isInsideQuotes(text) else { return Found() }
    let word = String(text.reversed().prefix { Self.isWordCharacter($0) }.reversed())
    var candidates = propertyCandidates(word)
    if !word.isEmpty, !word.contains(".") {
      let isLower = word.first?.isLowercase ?? false
      for (names, end) in [(QueryVocabulary.keywords, " "), (QueryVocabulary.functions, "(")] {
        for name in names where name.hasPrefix(word.uppercased()) {
          candidates.append((isLower ? name.lowercased() : name) + end)
        }
      }
    }
    return Self.found(candidates, after: word)
  }

  private func propertyCandidates(_ word: String) -> [String] {
    let direct = Self.nextSteps(properties, word)
    guard direct.isEmpty, let dot = word.firstIndex(of: ".") else { return direct }
    // The first name may be that of a source: h.name.
    let alias = word[...dot]
    return Self.nextSteps(properties, String(word[word.index(after: dot)...])).map { alias + $0 }
  }

  /// The paths that begin with `word`, up to their next dot.
  private static func nextSteps(_ paths: [String], _ word: String) -> [String] {
    let dots = word.count { $0 == "." }
    return paths.filter { path in path.count { $0 == "." } == dots && path.hasPrefix(word) }
  }

  private func completeCommand(_ text: String) -> Found {
    let words = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    let word = words[words.count - 1]
    guard words.count > 1 else {
      return Self.found(ShellCommands.all.map { ".\($0.name) " }, after: word)
    }
    guard let command = ShellCommands.all.first(where: { "." + $0.name == words[0] }) else { return Found() }
    switch command.completion {
    case .none: return Found()
    case .commands: return Self.found(ShellCommands.all.map(\.name), after: word)
    case .words(let choices): return Self.found(choices, after: word)
    case .properties: return Self.found(Self.nextSteps(properties, word), after: word)
    case .files: return Self.found(Self.files(word), after: word)
    }
  }

  private static func files(_ word: String) -> [String] {
    let directory = word.lastIndex(of: "/").map { String(word[...$0]) } ?? ""
    let names =
      (try? FileManager.default.contentsOfDirectory(atPath: directory.isEmpty ? "." : directory)) ?? []
    return names.filter { !$0.hasPrefix(".") }.map { name in
      var isDirectory = false
      _ = FileManager.default.fileExists(atPath: directory + name, isDirectory: &isDirectory)
      return directory + name + (isDirectory ? "/" : "")
    }
  }

  /// The rest of the only candidate, or what all have in common, or else the candidates to choose from.
  private static func found(_ candidates: [String], after word: String) -> Found {
    let matching = Set(
      candidates.filter { $0.hasPrefix(word) || $0.lowercased().hasPrefix(word.lowercased()) }
    )
    .sorted()
    guard let first = matching.first else { return Found() }
    let common = matching.dropFirst().reduce(first) { String(zip($0, $1).prefix { $0 == $1 }.map(\.0)) }
    let insertion = String(common.dropFirst(word.count))
    guard matching.count > 1, insertion.isEmpty else { return Found(insertion: insertion) }
    return Found(choices: matching.map { String($0.trimming()) })
  }

  private static func isWordCharacter(_ character: Character) -> Bool {
    character.isLetter || character.isNumber || "_$.`".contains(character)
  }

  private static func isInsideQuotes(_ text: String) -> Bool {
    var quote: Character?
    for character in text where "'\"".contains(character) {
      if quote == nil { quote = character } else if quote == character { quote = nil }
    }
    return quote != nil
  }

  /// `choices` in columns, as many as `width` characters hold.
  static func columns(_ choices: [String], width: Int) -> [String] {
    let cell = (choices.map(\.count).max() ?? 0) + 2
    let count = max(1, width / cell)
    let rows = (choices.count + count - 1) / count
    return (0..<rows).map { row in
      var line = ""
      for index in stride(from: row, to: choices.count, by: rows) {
        line += choices[index] + String(repeating: " ", count: cell - choices[index].count)
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}
