/// The head of an HTTP/1 answer, read strictly.
///
///   head   := "HTTP/1." ("0" | "1") " " 3 digits [" " reason] CRLF  (name ":" value CRLF)*  CRLF
///
/// Lines that go on in the next one, names with other characters than a token's, and values with control characters are
/// refused.
struct AnswerHead: Sendable, Equatable {
  /// The most bytes of a head, and the most headers in one.
  static let maximumBytes = 16 << 10
  static let maximumHeaders = 64

  struct Malformed: Error, Equatable { var reason: String }

  var status: Int
  /// The server's words; they may be empty.
  var reason: String
  /// Names in lower case, and values without spaces around, in order.
  var headers: [(name: String, value: String)]

  static func == (left: AnswerHead, right: AnswerHead) -> Bool {
    left.status == right.status && left.reason == right.reason
      && left.headers.elementsEqual(right.headers) { $0 == $1 }
  }

  /// All values of a header, in order.
  func values(_ name: String) -> [String] { headers.filter { $0.name == name }.map(\.value) }

  /// Whether a header that lists words has one of them, in any case.
  func lists(_ name: String, _ word: String) -> Bool {
    values(name).flatMap { $0.split(separator: ",") }.contains {
      $0.trimmingBlanks.lowercased() == word
    }
  }

  /// Reads a head from the beginning of what has come. Nil if it isn't there whole. `length` is its length in bytes.
  static func read(_ bytes: [UInt8]) throws(Malformed) -> (head: AnswerHead, length: Int)? {
    var lines: [ArraySlice<UInt8>] = []
    var start = 0
    while let end = bytes[start...].firstIndex(of: 10) {
      guard end < maximumBytes else { throw Malformed(reason: "a head of more than \(maximumBytes) bytes") }
      guard end > start, bytes[end - 1] == 13 else { throw Malformed(reason: "a line without CR at its end") }
      let line = bytes[start..<end - 1]
      start = end + 1
      if line.isEmpty {
        guard !lines.isEmpty else { throw Malformed(reason: "no status line") }
        return (try parse(lines), start)
      }
      guard lines.count <= maximumHeaders else {
        throw Malformed(reason: "more than \(maximumHeaders) headers")
      }
      lines.append(line)
      // What isn't HTTP is refused at its first line.
      if lines.count == 1 { _ = try statusLine(line) }
    }
    guard bytes.count < maximumBytes else {
      throw Malformed(reason: "a head of more than \(maximumBytes) bytes")
    }
    return nil
  }

  private static func parse(_ lines: [ArraySlice<UInt8>]) throws(Malformed) -> AnswerHead {
    var (status, reason) = try statusLine(lines[0])
    if reason.utf8.count > 200 { reason = String(reason.prefix(200)) }
    var headers: [(name: String, value: String)] = []
    for line in lines.dropFirst() { headers.append(try header(line)) }
    return AnswerHead(status: status, reason: reason, headers: headers)
  }

  private static func statusLine(_ line: ArraySlice<UInt8>) throws(Malformed) -> (Int, String) {
    let text = [UInt8](line)
    guard text.count >= 12, text.starts(with: Array("HTTP/1.".utf8)), text[7] == 48 || text[7] == 49,
      text[8] == 32, text[9...11].allSatisfy({ (48...57).contains($0) }), text[9] != 48,
      text.count == 12 || text[12] == 32, text[12...].allSatisfy(isText)
    else { throw Malformed(reason: "no status line of HTTP/1") }
    let status = text[9...11].reduce(0) { $0 * 10 + Int($1) - 48 }
    return (status, String(decoding: text[12...].dropFirst(), as: UTF8.self))
  }

  private static func header(_ line: ArraySlice<UInt8>) throws(Malformed) -> (name: String, value: String) {
    guard let colon = line.firstIndex(of: 58), colon > line.startIndex,
      line[..<colon].allSatisfy(isTokenByte)
    else { throw Malformed(reason: "a header without a name") }
    let value = line[(colon + 1)...]
    guard value.allSatisfy(isText) else { throw Malformed(reason: "a control character in a header") }
    let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
    return (name, String(Substring(decoding: value, as: UTF8.self).trimmingBlanks))
  }

  private static func isText(_ byte: UInt8) -> Bool { byte >= 32 && byte != 127 || byte == 9 }

  /// Whether a byte may be in a name of HTTP.
  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 48...57, 65...90, 97...122: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

extension Substring {
  /// Without spaces and tabs at both ends.
  var trimmingBlanks: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}
