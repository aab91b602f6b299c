// A multipart body (RFC 2046, 5.1.1), as CouchDB and its replicator send it:
//
//   body      := [ preamble CRLF ] "--" boundary blank* CRLF part ( delimiter blank* CRLF part )* delimiter "--" epilogue
//   delimiter := CRLF "--" boundary
//   part      := ( name ":" value CRLF )* CRLF bytes
//
// A delimiter that is followed by anything else than blanks and CRLF, or "--", belongs to the bytes.

#if canImport(Glibc)
  import Glibc
#endif

/// Why a multipart body can't be read.
package enum MultipartError: Error, Sendable, Hashable {
  /// A boundary has 1 to 200 bytes.
  case invalidBoundary
  /// There is more before the first boundary than is skipped.
  case longPreamble
  /// A part's header isn't a name, a colon and a value.
  case malformedHeader
  /// The headers of a part, or the blanks behind a boundary, have too many bytes.
  case longHeaders
  /// There are more parts than allowed.
  case tooManyParts
  /// The body ends before its last boundary.
  case endsEarly
}

/// Takes a multipart body apart while it arrives, in pieces of any size. It keeps no more than the headers of one part.
package struct MultipartParser {
  /// What it finds.
  package enum Event {
    /// A part begins.
    case begin(HTTPHeaders)
    /// Some bytes of the part. They are valid until the handler returns.
    case bytes(UnsafeRawBufferPointer)
    /// The part is whole.
    case end
  }

  /// How much of what is accepted.
  package struct Limits: Sendable {
    /// Bytes of the headers of one part.
    package var headerBytes = 16 << 10
    /// Parts.
    package var parts = 10_000
    /// Bytes before the first boundary.
    package var preambleBytes = 64 << 10
    /// Creates the defaults.
    package init() {}
  }

  private enum State { case preamble, headers, bytes, epilogue }

  private let delimiter: [UInt8]
  private let limits: Limits
  private var state = State.preamble
  /// What has arrived and isn't handled. The body begins as if a line had ended before it.
  private var pending: [UInt8] = [0x0D, 0x0A]
  private var headers = HTTPHeaders()
  private var headerBytes = 0
  private var parts = 0
  private var skipped = 0

  /// Creates a parser of a body with that boundary. Throws `invalidBoundary`.
  package init(boundary: String, limits: Limits = Limits()) throws(MultipartError) {
    guard (1...200).contains(boundary.utf8.count) else { throw .invalidBoundary }
    delimiter = Array("\r\n--".utf8) + Array(boundary.utf8)
    self.limits = limits
  }

  /// Whether the last boundary has come. What comes behind it is skipped.
  package var isAtEnd: Bool { state == .epilogue }

  /// Takes the next bytes, and calls `handle` with what they complete. Throws a `MultipartError` or what `handle` throws;
  /// then the parser can't be used any more.
  package mutating func parse(_ bytes: UnsafeRawBufferPointer, _ handle: (Event) throws -> Void) throws {
    guard state != .epilogue else { return }
    pending.append(contentsOf: bytes)
    var position = 0
    while try step(&position, handle) {}
    if state == .epilogue { pending = [] } else { pending.removeFirst(position) }
  }

  /// The body has ended. Throws `endsEarly` if it isn't whole.
  package func finish() throws(MultipartError) { if state != .epilogue { throw .endsEarly } }

  /// Handles what begins at `position`, and moves it. False if more bytes are needed.
  private mutating func step(_ position: inout Int, _ handle: (Event) throws -> Void) throws -> Bool {
    switch state {
    case .epilogue: return false
    case .headers: return try header(&position, handle)
    case .preamble, .bytes: break
    }
    let (border, found) = try border(from: position)
    if border > position {
      if state == .bytes {
        try pending.withUnsafeBytes {
          try handle(.bytes(UnsafeRawBufferPointer(rebasing: $0[position..<border])))
        }
      } else {
        skipped += border - position
        if skipped > limits.preambleBytes + 2 { throw MultipartError.longPreamble }
      }
      position = border
    }
    guard let found else { return false }
    if state == .bytes { try handle(.end) }
    position = found.end
    if found.isLast {
      state = .epilogue
      return false
    }
    parts += 1
    guard parts <= limits.parts else { throw MultipartError.tooManyParts }
    state = .headers
    headers = HTTPHeaders()
    headerBytes = 0
    return true
  }

  /// Takes one line of the headers, or the empty line behind them.
  private mutating func header(_ position: inout Int, _ handle: (Event) throws -> Void) throws -> Bool {
    guard let line = lineEnd(from: position) else {
      if headerBytes + pending.count - position > limits.headerBytes { throw MultipartError.longHeaders }
      return false
    }
    headerBytes += line + 2 - position
    if headerBytes > limits.headerBytes { throw MultipartError.longHeaders }
    defer { position = line + 2 }
    guard line > position else {
      state = .bytes
      try handle(.begin(headers))
      return true
    }
    let text = pending[position..<line]
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > position,
      text[..<colon].allSatisfy({ $0 > 0x20 && $0 < 0x7F })
    else { throw MultipartError.malformedHeader }
    let value = text[(colon + 1)...].trimmed
    Array(text[..<colon]).withUnsafeBytes { name in
      Array(value).withUnsafeBytes { headers.add(name: name, value: $0) }
    }
    return true
  }

  private func lineEnd(from start: Int) -> Int? {
    var index = start
    while index + 1 < pending.count {
      if pending[index] == 0x0D, pending[index + 1] == 0x0A { return index }
      index += 1
    }
    return nil
  }

  /// The first delimiter at or behind `start`: where the bytes before it end, where the next part begins, and whether it is the
  /// last one. Without a whole delimiter, the end of the bytes that can't belong to one, and nil.
  private func border(from start: Int) throws -> (Int, (end: Int, isLast: Bool)?) {
    try pending.withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return (start, nil) }
      var index = start
      while index < bytes.count {
        guard let next = memchr(base + index, 0x0D, bytes.count - index) else { return (bytes.count, nil) }
        index = UnsafeRawPointer(next) - base
        let here = min(delimiter.count, bytes.count - index)
        guard delimiter.withUnsafeBytes({ $0.baseAddress.map { memcmp(base + index, $0, here) } }) == 0 else {
          index += 1
          continue
        }
        var after = index + delimiter.count
        // "--", or blanks and the end of the line.
        guard after + 1 < bytes.count else { return (index, nil) }
        if bytes[after] == UInt8(ascii: "-"), bytes[after + 1] == UInt8(ascii: "-") {
          return (index, (after + 2, true))
        }
        while after < bytes.count, bytes[after] == 0x20 || bytes[after] == 0x09 { after += 1 }
        if after - index > limits.headerBytes { throw MultipartError.longHeaders }
        guard after + 1 < bytes.count else { return (index, nil) }
        if bytes[after] == 0x0D, bytes[after + 1] == 0x0A { return (index, (after + 2, false)) }
        index += 1
      }
      return (bytes.count, nil)
    }
  }
}
