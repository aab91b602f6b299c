import CMicrohttpd
import Glibc
import HTTP

/// Why the server itself refuses a request.
struct Rejection: Error {
  var status: Int
  var reason: String

  init(_ status: Int, _ reason: String) {
    self.status = status
    self.reason = reason
  }
}

/// The line and the headers of a request, checked.
///
/// What two parsers may read differently is refused, so that no request hides behind another (request smuggling):
/// several lengths, a length beside a transfer coding, an unknown coding, a folded line, a bare line feed, a zero byte.
final class RequestHead: Sendable {
  let method: String
  let target: HTTPTarget
  let headers: HTTPHeaders
  /// The host that is asked: that of the target, or else of the header `Host`. Nil without either, in HTTP/1.0.
  let authority: HTTPAuthority?
  /// The announced length; nil for a chunked body, 0 without a body.
  let bodyLength: Int?
  let expectsContinue: Bool
  let isHTTP11: Bool

  var hasBody: Bool { bodyLength != 0 }
  var isHead: Bool { method == "HEAD" }

  /// `place` is where the target lay when `raw` was copied from it.
  init(
    _ mhd: OpaquePointer, method: UnsafePointer<CChar>, target raw: [UInt8], at place: UnsafePointer<CChar>?,
    version: UnsafePointer<CChar>, limits: HTTPServerLimits
  ) throws(Rejection) {
    let size = cmicrohttpd_header_size(mhd)
    guard size <= limits.headerBytes else {
      // A client may ask for less at a time when it hears that the target is what is long; CouchDB's replicator does.
      guard raw.count <= limits.headerBytes / 2 else {
        throw Rejection(414, "the target and the headers are longer than \(limits.headerBytes) bytes")
      }
      throw Rejection(431, "the headers are longer than \(limits.headerBytes) bytes")
    }
    guard strcmp(version, "HTTP/1.1") == 0 || strcmp(version, "HTTP/1.0") == 0 else {
      throw Rejection(505, "only HTTP/1.1 and HTTP/1.0 are spoken here")
    }
    isHTTP11 = version[7] == CChar(bitPattern: UInt8(ascii: "1"))
    guard method[0] != 0, Self.isToken(UnsafeRawBufferPointer(start: method, count: strlen(method))) else {
      throw Rejection(400, "the method isn't a name")
    }
    self.method = Self.name(of: method)
    guard let target = HTTPTarget(raw), !target.isAsterisk || self.method == "OPTIONS" else {
      throw Rejection(400, "the target isn't a path")
    }
    self.target = target

    var collector = HeaderCollector()
    if !HeaderCollector.isLenient {
      // A zero byte would end a part early, as a second blank moves it.
      guard let place, place == method + strlen(method) + 1, version == place + raw.count + 1 else {
        throw Rejection(400, "the line of the request is malformed")
      }
      collector.end = UnsafeRawPointer(version + 8)
    }
    collector.headers.reserve(bytes: size)
    withUnsafeMutablePointer(to: &collector) {
      _ = MHD_get_connection_values_n(mhd, .HEADER_KIND, HeaderCollector.callback, $0)
    }
    // Behind the last value are two line ends, and then the body.
    if let last = collector.end, last + 4 != UnsafeRawPointer(method) + size { collector.isMalformed = true }
    guard !collector.isMalformed else { throw Rejection(400, "a header is malformed") }
    headers = collector.headers

    guard collector.hosts == 1 || (collector.hosts == 0 && !isHTTP11) else {
      throw Rejection(400, "the header Host must be there once")
    }
    let host = headers.bytes("host").flatMap { HTTPAuthority($0.trimmed) }
    guard host != nil || collector.hosts == 0 else {
      throw Rejection(400, "the header Host isn't a host, perhaps with a port")
    }
    // That of the target overrides the header, which has to be right all the same.
    if let raw = target.rawAuthority {
      guard let asked = HTTPAuthority(raw) else { throw Rejection(400, "the target has a malformed host") }
      authority = asked
    } else {
      authority = host
    }
    guard collector.lengths + collector.codings <= 1 else {
      throw Rejection(400, "the length of the body is given in more than one way")
    }
    if collector.codings == 1 {
      guard isHTTP11, headers.first("transfer-encoding")?.lowercased() == "chunked" else {
        throw Rejection(isHTTP11 ? 501 : 400, "the only transfer coding is chunked, in HTTP/1.1")
      }
      bodyLength = nil
    } else if collector.lengths == 1 {
      let digits = headers.bytes("content-length") ?? []
      var length = 0
      for digit in digits {
        let (product, isTooLong) = length.multipliedReportingOverflow(by: 10)
        guard digit &- 0x30 < 10, !isTooLong, product < Int.max - 9 else {
          throw Rejection(400, "the length of the body isn't a number")
        }
        length = product + Int(digit - 0x30)
      }
      guard !digits.isEmpty else { throw Rejection(400, "the length of the body isn't a number") }
      bodyLength = length
    } else {
      bodyLength = 0
    }
    if collector.hasExpectation, isHTTP11 {
      guard headers.first("expect")?.lowercased() == "100-continue" else {
        throw Rejection(417, "the only expectation is 100-continue")
      }
      expectsContinue = bodyLength != 0
    } else {
      expectsContinue = false
    }
  }

  private static let commonMethods: [StaticString] = [
    "GET", "PUT", "POST", "HEAD", "DELETE", "COPY", "OPTIONS",
  ]

  /// Short texts need no allocation, but checking their UTF-8 takes time too.
  private static func name(of method: UnsafePointer<CChar>) -> String {
    let length = strlen(method)
    for known in commonMethods
    where known.utf8CodeUnitCount == length && memcmp(known.utf8Start, method, length) == 0 {
      return known.description
    }
    return String(cString: method)
  }

  /// Whether all are characters of a token (RFC 9110, 5.6.2).
  static func isToken(_ bytes: UnsafeRawBufferPointer) -> Bool {
    for byte in bytes {
      // Two words of bits, one for each half of ASCII.
      let bits: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
      guard byte < 128, bits >> (UInt64(byte) & 63) & 1 == 1 else { return false }
    }
    return !bytes.isEmpty
  }
}

/// Takes the headers from libmicrohttpd.
private struct HeaderCollector {
  var headers = HTTPHeaders()
  /// Behind the last value; nil if places aren't looked at.
  var end: UnsafeRawPointer?
  var isMalformed = false
  var (hosts, lengths, codings) = (0, 0, 0)
  var hasExpectation = false

  /// Whether places aren't looked at. Up to 0.9.75 the library takes bare line feeds, folded lines and zero bytes, and shows none of them. Its strings
  /// lie in the buffer that the request was read into, so the places tell: a value is followed by CR, LF, and the next
  /// name. Later versions refuse them, and may lay out strings in other ways.
  static let isLenient: Bool = {
    let version = MHD_get_version().map { String(cString: $0) } ?? ""
    return !["0.9.73", "0.9.74", "0.9.75"].contains(version)
  }()

  static let callback: MHD_KeyValueIteratorN = { context, _, name, nameSize, value, valueSize in
    guard let context, let name else { return .YES }
    context.assumingMemoryBound(to: HeaderCollector.self).pointee.add(
      UnsafeRawBufferPointer(start: name, count: nameSize),
      UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueSize))
    return .YES
  }

  mutating func add(_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    guard RequestHead.isToken(name) else { return isMalformed = true }
    for byte in value where (byte < 0x20 && byte != 0x09) || byte == 0x7F { return isMalformed = true }
    if let end, name.baseAddress != end + 2 { isMalformed = true }
    if end != nil, let base = value.baseAddress { end = UnsafeRawPointer(base + value.count) }
    headers.add(name: name, value: value)
    func isName(_ other: StaticString) -> Bool {
      name.baseAddress.map {
        strncasecmp($0.assumingMemoryBound(to: CChar.self), other.utf8Start, name.count) == 0
      }
        ?? false
    }
    switch name.count {
    case 4 where isName("host"): hosts += 1
    case 6 where isName("expect"): hasExpectation = true
    case 14 where isName("content-length"): lengths += 1
    case 17 where isName("transfer-encoding"): codings += 1
    default: break
    }
  }
}
