import Glibc

// The host and the port of a request (RFC 9112, 3.2; RFC 3986, 3.2.2):
//
//   authority := host [ ":" port ]                  without a user
//   host      := "[" IPv6 address "]" | name        a name isn't empty, and may be an IPv4 address
//   name      := ( letter | digit | one of -._~!$&'()*+,;= | "%" hex hex )+
//   port      := digit*                             at most 65535

/// The host and the port that a request asks for.
package struct HTTPAuthority: Sendable {
  /// The authority as it came.
  package let raw: [UInt8]
  /// The host as it came, an IPv6 address without its brackets.
  package let host: ArraySlice<UInt8>

  /// Nil if the text isn't a host with or without a port.
  package init?(_ text: some Collection<UInt8>) {
    raw = Array(text)
    var rest: ArraySlice<UInt8>
    if raw.first == UInt8(ascii: "[") {
      guard let end = raw.firstIndex(of: UInt8(ascii: "]")), Self.isIPv6(raw[1..<end]) else { return nil }
      host = raw[1..<end]
      rest = raw[(end + 1)...]
    } else {
      let end = raw.firstIndex(of: UInt8(ascii: ":")) ?? raw.count
      guard end > 0, Self.isName(raw[..<end]) else { return nil }
      host = raw[..<end]
      rest = raw[end...]
    }
    guard let colon = rest.popFirst() else { return }
    guard colon == UInt8(ascii: ":"), rest.count <= 5, rest.allSatisfy({ $0 &- 0x30 < 10 }),
      rest.reduce(0, { $0 * 10 + Int($1 - 0x30) }) <= 65_535
    else { return nil }
  }

  private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
    var index = name.startIndex
    while index < name.endIndex {
      let byte = name[index]
      if byte == UInt8(ascii: "%") {
        guard name.endIndex - index >= 3, isHex(name[index + 1]), isHex(name[index + 2]) else { return false }
        index += 3
        continue
      }
      guard byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "-._~!$&'()*+,;=".utf8.contains(byte) else {
        return false
      }
      index += 1
    }
    return true
  }

  private static func isHex(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 6 }

  private static func isIPv6(_ text: ArraySlice<UInt8>) -> Bool {
    guard text.allSatisfy({ isHex($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") }) else {
      return false
    }
    var address = in6_addr()
    return inet_pton(AF_INET6, String(decoding: text, as: UTF8.self), &address) == 1
  }
}
