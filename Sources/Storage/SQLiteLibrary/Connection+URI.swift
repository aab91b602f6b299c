import Bytes

extension Connection {
  /// Returns a path as it stands in a URI that SQLite opens: `file:` and the encoded path, with options after a
  /// question mark (https://www.sqlite.org/uri.html).
  package static func uriPath(_ path: String) -> String {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(path.utf8.count + 16)
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        encoded.append(byte)
      default: encoded += "%\(Hex.text([byte], isUpper: true))".utf8
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
