import Bytes

// The target of a request (RFC 9112, 3.2):
//
//   target    := origin | absolute | "*"
//   origin    := path [ "?" query ]
//   absolute  := "http" ["s"] "://" authority [ origin ]
//   path      := ( "/" segment )+                       split first, decoded afterwards: "%2F" is no border
//   query     := [ item ( "&" item )* ]
//   item      := name [ "=" value ]                     "+" is a blank

/// The target of a request: the bytes as they came, and their parts.
package struct HTTPTarget: Sendable {
  /// The bytes as they came.
  package let raw: [UInt8]
  private let authorityRange: Range<Int>?
  private let path: Range<Int>
  private let query: Range<Int>?
  /// The segments of the path, each percent-decoded: `/db/a%2Fb` has `db` and `a/b`. `/` has none, and `/db/` has `db`
  /// and an empty one. Segments such as `..` stay. Nil if a percent sign isn't followed by two hexadecimal digits.
  package let segments: [ByteString]?

  /// Nil if it isn't a path, or has a byte that a target can't have.
  package init?(_ raw: [UInt8]) {
    var start = 0
    var authorityRange: Range<Int>?
    guard !raw.isEmpty else { return nil }
    if raw[0] != UInt8(ascii: "/") {
      if raw == [UInt8(ascii: "*")] {
        self.raw = raw
        self.authorityRange = nil
        path = 0..<1
        query = nil
        segments = []
        return
      }
      guard let authority = Self.authority(in: raw) else { return nil }
      authorityRange = authority
      start = authority.upperBound
    }
    var question: Int?
    for index in 0..<raw.count {
      let byte = raw[index]
      // Blanks, control characters, and what begins a fragment.
      if byte <= 0x20 || byte == 0x7F || byte == UInt8(ascii: "#") { return nil }
      if byte == UInt8(ascii: "?"), index >= start, question == nil { question = index }
    }
    self.raw = raw
    self.authorityRange = authorityRange
    path = start..<(question ?? raw.count)
    query = question.map { $0 + 1..<raw.count }
    segments = Self.segments(raw[path])
  }

  /// The segments of the path, decoded, with a blank for each "+" that isn't escaped. Nil if a percent sign isn't followed by two
  /// hexadecimal digits.
  package var segmentsWithBlanks: [ByteString]? {
    rawPath.contains(UInt8(ascii: "+")) ? Self.segments(rawPath, plusIsBlank: true) : segments
  }

  private static func segments(_ path: ArraySlice<UInt8>, plusIsBlank: Bool = false) -> [ByteString]? {
    guard path.count > 1 else { return [] }
    var found: [ByteString] = []
    for part in path.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard let decoded = decode(part, plusIsBlank: plusIsBlank) else { return nil }
      found.append(ByteString(decoded))
    }
    return found
  }

  /// Where the authority is behind `http://`; nil if there is none.
  private static func authority(in raw: [UInt8]) -> Range<Int>? {
    let schemes = ["http://", "https://"].map { Array($0.utf8) }
    for scheme in schemes where raw.count > scheme.count {
      guard zip(raw, scheme).allSatisfy({ $0.lowercasedASCII == $1 }) else { continue }
      let rest = raw[scheme.count...]
      let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? raw.count
      return rest.startIndex..<end
    }
    return nil
  }

  /// Whether it is `*`: the server as a whole.
  package var isAsterisk: Bool { raw.count == 1 && raw[0] == UInt8(ascii: "*") }

  /// The authority of a target such as `http://authority/db`, which counts in the place of the header `Host`; nil in a path.
  package var rawAuthority: ArraySlice<UInt8>? { authorityRange.map { raw[$0] } }

  /// The path as it came, without the query: `/db/a%2Fb`.
  package var rawPath: ArraySlice<UInt8> { raw[path] }

  /// The query as it came, without `?`; nil if there is none.
  package var rawQuery: ArraySlice<UInt8>? { query.map { raw[$0] } }

  /// The items of the query in their order, decoded. Nil if a percent sign isn't followed by two hexadecimal digits.
  package var queryItems: [(name: ByteString, value: ByteString)]? {
    guard let rawQuery else { return [] }
    var found: [(name: ByteString, value: ByteString)] = []
    for part in rawQuery.split(separator: UInt8(ascii: "&")) {
      let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.endIndex
      guard let name = Self.decode(part[..<equals], plusIsBlank: true),
        let value = Self.decode(part[equals...].dropFirst(), plusIsBlank: true)
      else { return nil }
      found.append((ByteString(name), ByteString(value)))
    }
    return found
  }

  /// Bytes without their percent-escapes. Nil if a percent sign isn't followed by two hexadecimal digits.
  package static func decode(_ bytes: ArraySlice<UInt8>, plusIsBlank: Bool) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      index += 1
      switch byte {
      case UInt8(ascii: "%"):
        guard bytes.endIndex - index >= 2, let value = Hex.bytes(bytes[index..<index + 2]) else { return nil }
        decoded += value
        index += 2
      case UInt8(ascii: "+") where plusIsBlank: decoded.append(UInt8(ascii: " "))
      default: decoded.append(byte)
      }
    }
    return decoded
  }

  /// The path and the names of the query's items, for the log: values may be secrets.
  package var logged: String {
    let path = String(decoding: rawPath, as: UTF8.self)
    guard let rawQuery else { return path }
    let names = rawQuery.split(separator: UInt8(ascii: "&")).map { item in
      String(decoding: item.prefix { $0 != UInt8(ascii: "=") }, as: UTF8.self)
        + (item.contains(UInt8(ascii: "=")) ? "=…" : "")
    }
    return path + "?" + names.joined(separator: "&")
  }
}
