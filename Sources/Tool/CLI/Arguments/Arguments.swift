import Query

/// The arguments of one command, checked against its usage.
///
/// Options may appear anywhere, as `--name value` or `--name=value`. `--` ends them, for names that begin
/// with `-`, such as every ID made by 1.x on iOS. `-` alone is a positional.
struct Arguments {
  private var flags: Set<String> = []
  private var values: [String: [String]] = [:]
  private var positionals: [String: [String]] = [:]

  /// Parses the arguments. Throws a `UsageError` for an unknown option, a missing or invalid value, and too
  /// many or too few positionals.
  init(_ texts: some Sequence<String>, usage: Usage) throws {
    let options = Dictionary(uniqueKeysWithValues: usage.options.map { ($0.name, $0) })
    var places: [String] = []
    var rest = Array(texts).makeIterator()
    var optionsEnded = false
    while let text = rest.next() {
      guard !optionsEnded, text.utf8.first == UInt8(ascii: "-"), text.utf8.count > 1 else {
        places.append(text)
        continue
      }
      guard text != "--" else {
        optionsEnded = true
        continue
      }
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let named = parts[0].hasPrefix("--") ? options[String(parts[0].dropFirst(2))] : nil
      guard let option = named ?? usage.options.first(where: { $0.letter.map { "-\($0)" } == parts[0] })
      else {
        let names = usage.options.map { "--\($0.name)" } + ["--help"]
        let hint = parts[0].hasPrefix("--") ? Suggestions.hint(for: parts[0], among: names) : ""
        throw UsageError(
          "there is no option '\(parts[0])'\(hint); put -- before a name that begins with -, after all options"
        )
      }
      if option.valuePlaceholder == nil {
        guard parts.count == 1 else { throw UsageError("--\(option.name) takes no value") }
        flags.insert(option.name)
      } else {
        guard let value = parts.count == 2 ? parts[1] : rest.next() else {
          throw UsageError("--\(option.name) needs a value (\(option.valuePlaceholder ?? ""))")
        }
        do { try option.check(value) } catch let error as UsageError {
          throw UsageError("--\(option.name): \(error.message)")
        }
        values[option.name, default: []].append(value)
      }
    }
    try assign(places, to: usage.positionals)
  }

  private mutating func assign(_ texts: [String], to definitions: [Positional]) throws {
    var texts = texts[...]
    for definition in definitions {
      switch definition.count {
      case .one:
        guard let text = texts.popFirst() else { throw UsageError("\(definition.name) is missing") }
        positionals[definition.name] = [text]
      case .optional: positionals[definition.name] = texts.popFirst().map { [$0] } ?? []
      case .any, .many:
        guard definition.count == .any || !texts.isEmpty else {
          throw UsageError("\(definition.name) is missing")
        }
        positionals[definition.name] = Array(texts)
        texts = []
      }
    }
    if let extra = texts.first { throw UsageError("unexpected argument '\(extra)'") }
  }

  subscript(flag: Flag) -> Bool { flags.contains(flag.name) }

  /// The option's value; the last one if it is given more than once.
  func value<Value>(_ option: Option<Value>) throws -> Value? {
    try values[option.name]?.last.map(option.parse)
  }

  /// The values of an option that can be given more than once.
  func allValues<Value>(_ option: Option<Value>) throws -> [Value] {
    try (values[option.name] ?? []).map(option.parse)
  }

  /// The text of a required positional.
  func required(_ positional: Positional) throws -> String {
    guard let text = positionals[positional.name]?.first else {
      throw UsageError("\(positional.name) is missing")
    }
    return text
  }

  func optional(_ positional: Positional) -> String? { positionals[positional.name]?.first }

  func all(_ positional: Positional) -> [String] { positionals[positional.name] ?? [] }
}
