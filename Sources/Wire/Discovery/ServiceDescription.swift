/// A service as DNS-SD describes it (RFC 6763).
package struct ServiceDescription: Sendable, Hashable {
  /// The name that people see: 1 to 63 bytes. If another service of the type has it, a number is appended.
  package var name: String
  /// The type, such as `_http._tcp`.
  package var type: String
  /// The port.
  package var port: UInt16
  /// The version of IP that it is reached by.
  package var version: IPVersion
  /// More about the service, for those who look for it: everybody in the network sees it.
  package var attributes: [String: String]

  /// The most bytes of an attribute, with its name, and of all attributes.
  package static let (mostAttributeBytes, mostBytes) = (255, 1_300)

  /// Versions of IP.
  package enum IPVersion: Sendable, Hashable { case any, four, six }

  package init(
    name: String, type: String, port: UInt16, version: IPVersion = .any, attributes: [String: String] = [:]
  ) {
    self.version = version
    self.name = name
    self.type = type
    self.port = port
    self.attributes = attributes
  }

  /// Says what is wrong with it; nil if nothing is.
  package var problem: String? {
    guard (1...63).contains(name.utf8.count), name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
      return "the name of a service has 1 to 63 bytes without control characters"
    }
    guard Self.isType(type) else {
      return
        "the type of a service has the form _name._tcp, with 1 to 15 letters, digits and hyphens: '\(type)'"
    }
    var bytes = 0
    for (name, value) in attributes {
      let count = name.utf8.count + 1 + value.utf8.count
      bytes += count + 1
      guard !name.isEmpty, name.utf8.allSatisfy({ (0x20...0x7E).contains($0) && $0 != UInt8(ascii: "=") })
      else {
        return "the name of an attribute has visible ASCII characters but '='"
      }
      guard count <= Self.mostAttributeBytes else {
        return "the attribute \(name) has more than \(Self.mostAttributeBytes) bytes"
      }
    }
    return bytes <= Self.mostBytes ? nil : "the attributes have more than \(Self.mostBytes) bytes"
  }

  /// Whether a text is a type of services over TCP or UDP.
  package static func isType(_ text: String) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, parts[1] == "_tcp" || parts[1] == "_udp", parts[0].utf8.first == UInt8(ascii: "_")
    else {
      return false
    }
    let name = parts[0].utf8.dropFirst()
    return (1...15).contains(name.count)
      && name.allSatisfy { $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || $0 == UInt8(ascii: "-") }
  }
}
