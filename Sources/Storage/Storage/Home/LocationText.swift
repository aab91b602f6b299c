// location = scheme "://" rest "#" name          name: percent-encoded UTF-8, without "@" and "/"

/// Reads texts that say where a database on a server is.
package enum LocationText {
  /// The scheme of a text that is meant as a location: a letter, then letters, digits, `+`, `-` and `.`, before `://`. Nil if it is
  /// a path.
  package static func scheme(of text: String) -> String? {
    let bytes = Array(text.utf8.prefix { $0 != UInt8(ascii: ":") })
    guard text.utf8.dropFirst(bytes.count).starts(with: "://".utf8), let first = bytes.first,
      isLetter(first), bytes.allSatisfy({ isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) })
    else { return nil }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  /// The parts before and behind the last `#`. Nil if there is no name: a `#` before an `@` or a `/` belongs to a password.
  package static func split(_ text: String) -> (connection: String, name: Substring)? {
    guard let mark = text.utf8.lastIndex(of: UInt8(ascii: "#")) else { return nil }
    let name = text[text.utf8.index(after: mark)...]
    guard !name.utf8.contains(UInt8(ascii: "@")), !name.utf8.contains(UInt8(ascii: "/")) else { return nil }
    return (String(text[..<mark]), name)
  }

  /// The text without percent-encoding. Nil if that is wrong, or if the bytes aren't UTF-8.
  package static func decoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = Substring(text).utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// The text as it stands in a location: all but letters, digits and `-._~` is percent-encoded.
  package static func encoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if isLetter(byte) && byte < 0x80 || isDigit(byte) || "-._~".utf8.contains(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// A location for people: without the password of its user, and without the parameters that hold passwords. A path stays as it is.
  package static func withoutSecrets(_ text: String) -> String {
    guard scheme(of: text) != nil else { return text }
    guard let (connection, name) = split(text) else { return connectionWithoutSecrets(text) }
    return connectionWithoutSecrets(connection) + "#" + name
  }

  /// The index behind `://`.
  private static func endOfScheme(_ text: String) -> String.Index? {
    scheme(of: text).map { text.utf8.index(text.utf8.startIndex, offsetBy: $0.utf8.count + 3) }
  }

  private static func connectionWithoutSecrets(_ text: String) -> String {
    guard let scheme = endOfScheme(text) else { return text }
    var rest = text[scheme...]
    var parameters: Substring?
    if let mark = rest.utf8.firstIndex(of: UInt8(ascii: "?")) {
      let behind = rest[rest.utf8.index(after: mark)...]
      // A password may hold a question mark. Then no slash stands before it, but an @ behind it.
      if rest[..<mark].utf8.contains(UInt8(ascii: "/")) || !behind.utf8.contains(UInt8(ascii: "@")) {
        parameters = behind
        rest = rest[..<mark]
      }
    }
    // A password may hold what ends a host, so the last @ ends it.
    if let at = rest.utf8.lastIndex(of: UInt8(ascii: "@")),
      let colon = rest[..<at].utf8.firstIndex(of: UInt8(ascii: ":"))
    {
      rest = rest[..<colon] + rest[at...]
    }
    var shown = text[..<scheme] + rest
    if let parameters {
      let kept = parameters.split(separator: "&").filter { parameter in
        let name = decoded(parameter.prefix { $0 != "=" }) ?? ""
        return name != "password" && name != "sslpassword"
      }
      if !kept.isEmpty { shown += "?" + kept.joined(separator: "&") }
    }
    return String(shown)
  }
}
