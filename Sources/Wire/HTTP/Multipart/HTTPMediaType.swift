// A media type with parameters (RFC 9110, 8.3.1), as in Content-Type and Content-Disposition:
//
//   value     := name ( ";" parameter )*
//   parameter := name "=" ( token | quoted )          blanks around both are skipped
//   quoted    := '"' ( character | "\" character )* '"'

/// A media type, or another value with parameters.
package struct HTTPMediaType: Sendable {
  /// The value before the parameters, in lower case: `multipart/related`.
  package let name: String
  private var parameters: [(name: String, value: String)] = []

  /// Parses the value of a header. What isn't a parameter is skipped.
  package init(_ text: some StringProtocol) {
    var parts: [[UInt8]] = [[]]
    var isQuoted = false
    var isEscaped = false
    for byte in text.utf8 {
      if isEscaped {
        isEscaped = false
      } else if isQuoted, byte == UInt8(ascii: "\\") {
        isEscaped = true
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if byte == UInt8(ascii: ";"), !isQuoted {
        parts.append([])
        continue
      }
      parts[parts.count - 1].append(byte)
    }
    name = String(decoding: parts[0], as: UTF8.self).trimmed.lowercased()
    for part in parts.dropFirst() {
      guard let equals = part.firstIndex(of: UInt8(ascii: "=")) else { continue }
      let name = String(decoding: part[..<equals], as: UTF8.self).trimmed.lowercased()
      parameters.append((name, Self.unquoted(String(decoding: part[(equals + 1)...], as: UTF8.self).trimmed)))
    }
  }

  /// The value of the first parameter of that name, which is in lower case; nil if there is none.
  package subscript(parameter parameter: String) -> String? {
    parameters.first { $0.name == parameter }?.value
  }

  private static func unquoted(_ text: String) -> String {
    guard text.utf8.count >= 2, text.utf8.first == UInt8(ascii: "\""), text.utf8.last == UInt8(ascii: "\"")
    else {
      return text
    }
    var bytes: [UInt8] = []
    var isEscaped = false
    for byte in text.utf8.dropFirst().dropLast() {
      if byte == UInt8(ascii: "\\"), !isEscaped {
        isEscaped = true
        continue
      }
      isEscaped = false
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
