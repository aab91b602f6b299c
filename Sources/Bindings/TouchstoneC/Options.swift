import Fleece
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// The members of an object of options, which are taken one by one. What is left at the end is a mistake.
struct Options {
  private var members: JSONObject
  private var known: [String] = []

  /// Reads the text of an object. NULL and the empty text are {}.
  init(_ text: UnsafePointer<CChar>?, _ length: Int) throws {
    let json = bytes(text, length)
    guard !json.isEmpty else {
      members = [:]
      return
    }
    guard case .object(let members) = try JSONValue(json: json) else {
      throw Misuse("the options aren't a JSON object", .badRequest)
    }
    self.members = members
  }

  /// Takes a member. Null is the same as none.
  mutating func value(_ name: String) -> JSONValue? {
    known.append(name)
    guard let value = members.removeValue(forKey: name), !value.isNull else { return nil }
    return value
  }

  private mutating func value<Result>(
    _ name: String, _ type: String, _ convert: (JSONValue) -> Result?
  ) throws -> Result? {
    guard let value = value(name) else { return nil }
    guard let result = convert(value) else {
      throw Misuse("the option \(name) isn't \(type): \(value)", .badRequest)
    }
    return result
  }

  mutating func string(_ name: String) throws -> String? { try value(name, "text") { $0.string } }
  mutating func bool(_ name: String) throws -> Bool? { try value(name, "true or false") { $0.bool } }
  mutating func double(_ name: String) throws -> Double? { try value(name, "a number") { $0.double } }
  mutating func int(_ name: String) throws -> Int? {
    try value(name, "an integer from 0 up") { $0.int.flatMap { $0 < 0 ? nil : Int($0) } }
  }
  mutating func strings(_ name: String) throws -> [String]? {
    try value(name, "an array of texts") { value in
      guard case .array(let items) = value else { return nil }
      let strings = items.compactMap(\.string)
      return strings.count == items.count ? strings : nil
    }
  }
  mutating func doubles(_ name: String) throws -> [Double]? {
    try value(name, "an array of numbers") { value in
      guard case .array(let items) = value else { return nil }
      let numbers = items.compactMap(\.double)
      return numbers.count == items.count ? numbers : nil
    }
  }
  mutating func object(_ name: String) throws -> JSONObject? {
    try value(name, "an object") { if case .object(let object) = $0 { object } else { nil } }
  }

  /// One of some words.
  mutating func choice<Choice>(_ name: String, _ choices: [(String, Choice)]) throws -> Choice? {
    guard let text = try string(name) else { return nil }
    guard let found = choices.first(where: { $0.0 == text }) else {
      let all = choices.map { "\"\($0.0)\"" }.joined(separator: ", ")
      throw Misuse("the option \(name) is \"\(text)\"; it can be \(all)", .badRequest)
    }
    return found.1
  }

  /// The key that some members say: a passphrase, hexadecimal digits, or a file. `prefix` begins their names.
  mutating func key(_ prefix: String = "") throws -> UserKey? {
    func name(_ rest: String) -> String {
      prefix.isEmpty ? rest : prefix + rest.prefix(1).uppercased() + rest.dropFirst()
    }
    let names = [name("passphrase"), name("keyHex"), name("keyFile")]
    let given = try names.map { try string($0) }
    guard given.count(where: { $0 != nil }) < 2 else {
      throw Misuse("only one of the options \(names.joined(separator: ", ")) can be given", .badRequest)
    }
    if let text = given[0] { return try .passphrase(text) }
    if let path = given[2] { return try UserKey(contentsOfFile: path) }
    guard let digits = given[1] else { return nil }
    let pairs = Array(digits.utf8)
    let bytes = stride(from: 0, to: pairs.count, by: 2).compactMap { index in
      UInt8(String(decoding: pairs[index..<min(index + 2, pairs.count)], as: UTF8.self), radix: 16)
    }
    guard pairs.count == 64, bytes.count == 32 else {
      throw Misuse("the option \(names[1]) doesn't have 64 hexadecimal digits", .badRequest)
    }
    return try .raw(bytes)
  }

  /// Throws if there are members that nothing has taken.
  func end() throws {
    guard let name = members.map(\.key).sorted().first else { return }
    throw Misuse(
      "there is no option \"\(name)\"; there are \(known.sorted().joined(separator: ", "))", .badRequest)
  }
}
