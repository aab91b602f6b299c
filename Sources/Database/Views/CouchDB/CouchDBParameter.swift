import Fleece

/// The value of an option: text of a query string, or JSON of a body.
struct CouchDBParameter {
  /// The text, or the JSON.
  let text: [UInt8]
  /// The value, if it is of a body.
  let value: JSONValue?

  init(_ text: String) {
    self.text = Array(text.utf8)
    value = nil
  }

  init(json text: [UInt8], _ value: JSONValue) {
    self.text = text
    self.value = value
  }

  /// A string, or the text of the query string.
  var string: String? {
    switch value {
    case nil: String(decoding: text, as: UTF8.self)
    case .string(let string): string
    default: nil
    }
  }

  /// As error messages show it.
  private var quoted: String {
    guard let string else { return String(decoding: text, as: UTF8.self) }
    // An empty text is an empty list there.
    if string.isEmpty { return "[]" }
    var quoted = "\""
    for character in string {
      if character == "\"" || character == "\\" { quoted.append("\\") }
      quoted.append(character)
    }
    return quoted + "\""
  }

  func bool() throws -> Bool {
    if case .bool(let bool) = value { return bool }
    switch string?.lowercased() {
    case "true": return true
    case "false": return false
    default: throw CouchDBError.query("Invalid boolean parameter: \(quoted)")
    }
  }

  /// An integer of at least 0.
  func count() throws -> Int {
    let number: Int?
    switch value {
    case nil, .string: number = CouchDBParameter.integer(string ?? "")
    case .some(let value): number = value.int.map { Int($0) }
    }
    guard let number else {
      // A string of a body is bytes, that of a query a list.
      let term = value?.string.map { OrderedJSON.scalar(.string($0)).shortTerm } ?? quoted
      throw CouchDBError.query("Invalid value for integer: \(term)")
    }
    guard number >= 0 else { throw CouchDBError.query("Invalid value for positive integer: \(quoted)") }
    return number
  }

  /// Numbers beyond `Int` are its limits.
  private static func integer(_ text: String) -> Int? {
    if let number = Int(text) { return number }
    let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return text.hasPrefix("-") ? .min : .max
  }

  /// A key.
  func json() throws -> [UInt8] {
    if value == nil { _ = try CouchDBParameter.parsed(text) }
    return text
  }

  /// Keys; nil if it isn't an array.
  func items() throws -> [[UInt8]]? {
    guard try (value ?? CouchDBParameter.parsed(text)).array != nil else { return nil }
    return try CouchDBParameter.items(of: text)
  }

  /// Parses JSON. Throws the error of invalid JSON.
  static func parsed(_ text: [UInt8]) throws -> JSONValue {
    do { return try text.withUnsafeBytes { try JSONValue(json: $0) } } catch {
      throw CouchDBError.invalidJSON
    }
  }

  /// The texts of the items of an array.
  static func items(of text: [UInt8]) throws -> [[UInt8]] {
    try text.withUnsafeBytes { text in
      var items: [[UInt8]] = []
      var scanner = JSONScanner(text)
      _ = try scanner.next()
      try scanner.array { scanner in
        _ = try scanner.next()
        items.append(Array(try scanner.skip()))
      }
      return items
    }
  }

  /// The members of an object. Throws the error of a body that isn't one.
  static func members(of text: [UInt8]) throws -> [(name: String, parameter: CouchDBParameter)] {
    guard case .object(let object) = try parsed(text) else {
      throw CouchDBError.request("Request body must be a JSON object")
    }
    return try text.withUnsafeBytes { text in
      var members: [(String, CouchDBParameter)] = []
      var scanner = JSONScanner(text)
      _ = try scanner.next()
      try scanner.members { name, scanner in
        _ = try scanner.next()
        let name = String(decoding: name, as: UTF8.self)
        let text = Array(try scanner.skip())
        members.append((name, CouchDBParameter(json: text, object[name] ?? .null)))
      }
      return members
    }
  }
}
