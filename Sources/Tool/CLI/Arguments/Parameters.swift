/// An option without a value: `--json`.
struct Flag: Sendable {
  let name: String
  let help: String

  init(_ name: String, _ help: String) {
    self.name = name
    self.help = help
  }
}

/// An option with a value: `--rev 1-feb9`, `--rev=1-feb9`.
struct Option<Value: Sendable>: Sendable {
  let name: String
  /// The name of the value in the help: `REV`.
  let placeholder: String
  let help: String
  /// Parses the value. Throws a `UsageError` with the fault.
  let parse: @Sendable (String) throws -> Value
  /// The letter after one dash, if it has one too: `-f`.
  private(set) var letter: Character?
  /// The values that completion offers. Empty if there are too many to name.
  private(set) var choices: [String] = []

  init(
    _ name: String, _ placeholder: String, _ help: String, parse: @escaping @Sendable (String) throws -> Value
  ) {
    self.name = name
    self.placeholder = placeholder
    self.help = help
    self.parse = parse
  }

  /// The same option with values that completion offers.
  func choosing(_ choices: [String]) -> Self {
    var option = self
    option.choices = choices
    return option
  }

  /// The same option with a letter: `-f`.
  func short(_ letter: Character) -> Self {
    var option = self
    option.letter = letter
    return option
  }
}

extension Option where Value == String {
  init(_ name: String, _ placeholder: String, _ help: String) {
    self.init(name, placeholder, help) { text in
      guard !text.isEmpty else { throw UsageError("it is empty") }
      return text
    }
  }
}

extension Option where Value: RawRepresentable<String> {
  /// An option whose value is a raw value. `refusal` says what other texts are: "isn't a or b".
  init(_ name: String, _ placeholder: String, _ help: String, refusal: String) {
    self.init(name, placeholder, help) { text in
      guard let value = Value(rawValue: text) else { throw UsageError("'\(text)' \(refusal)") }
      return value
    }
  }
}

extension Option where Value == Int {
  init(_ name: String, _ placeholder: String, in range: ClosedRange<Int>, _ help: String) {
    self.init(name, placeholder, help) { text in
      guard let number = Int(text), range.contains(number) else {
        let upper = range.upperBound == .max ? "up" : "\(range.upperBound)"
        throw UsageError(
          "'\(text)' is not an integer from \(range.lowerBound) \(upper == "up" ? "" : "to ")\(upper)")
      }
      return number
    }
  }
}

/// An argument that is identified by its position: `DB`.
struct Positional: Sendable {
  enum Count: Sendable {
    case one
    case optional
    /// One or more. Only for the last positional.
    case many
    /// Any number, including none. Only for the last positional.
    case any
  }

  let name: String
  let count: Count
  let help: String
  /// The words that completion offers. Empty if it can be anything.
  private(set) var choices: [String] = []

  init(_ name: String, _ help: String, count: Count = .one) {
    self.name = name
    self.count = count
    self.help = help
  }

  /// The same argument with words that completion offers.
  func choosing(_ choices: [String]) -> Self {
    var positional = self
    positional.choices = choices
    return positional
  }
}

/// An option in the usage of a command, whatever the type of its value.
protocol NamedOption: Sendable {
  var name: String { get }
  var help: String { get }
  /// Nil for an option without a value.
  var valuePlaceholder: String? { get }
  /// The letter after one dash, if it has one too.
  var letter: Character? { get }
  /// The values that completion offers.
  var choices: [String] { get }
  /// Throws a `UsageError` if `text` isn't a valid value.
  func check(_ text: String) throws
}

extension Flag: NamedOption {
  var valuePlaceholder: String? { nil }
  var letter: Character? { nil }
  var choices: [String] { [] }
  func check(_ text: String) throws {}
}

extension Option: NamedOption {
  var valuePlaceholder: String? { placeholder }
  func check(_ text: String) throws { _ = try parse(text) }
}

/// Wrong usage or bad input: one line with the fault and where it is. The exit status is 2.
struct UsageError: Error {
  let message: String
  init(_ message: String) { self.message = message }
}
