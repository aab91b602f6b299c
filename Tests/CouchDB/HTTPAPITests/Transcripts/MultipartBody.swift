import CZlib
import Fleece

/// The body of an answer, taken apart. It is a second implementation beside the server's, for the tests.
indirect enum AnswerContent {
  case empty
  case json(JSONValue)
  case parts([AnswerPart])
  case bytes([UInt8])

  /// Takes a body apart as its headers say. What isn't what they say stays bytes.
  init(_ body: [UInt8], _ header: (String) -> String?) {
    var body = body
    if header("content-encoding") == "gzip" { body = gunzipped(body) ?? body }
    let type = header("content-type") ?? ""
    let media = type.prefix { $0 != ";" }
    if body.isEmpty {
      self = .empty
    } else if media.hasPrefix("multipart/"), let boundary = Self.boundary(type) {
      self = Self.parts(body, boundary).map { .parts($0) } ?? .bytes(body)
    } else if media == "application/json", let json = try? body.withUnsafeBytes({ try JSONValue(json: $0) }) {
      self = .json(json)
    } else {
      self = .bytes(body)
    }
  }

  private static func boundary(_ type: String) -> String? {
    guard let start = type.range(of: "boundary=") else { return nil }
    return String(type[start.upperBound...].prefix { $0 != ";" }).replacing("\"", with: "")
  }

  private static func parts(_ body: [UInt8], _ boundary: String) -> [AnswerPart]? {
    let line = Array("\r\n--\(boundary)".utf8)
    var rest = (Array("\r\n".utf8) + body)[...]
    var parts: [AnswerPart] = []
    guard let first = rest.firstRange(of: line) else { return nil }
    rest = rest[first.upperBound...]
    while !rest.starts(with: "--".utf8) {
      guard let end = rest.firstRange(of: line), let part = AnswerPart(rest[..<end.lowerBound]) else {
        return nil
      }
      parts.append(part)
      rest = rest[end.upperBound...]
    }
    return parts
  }
}

/// A part of a body of several.
struct AnswerPart {
  let headers: [(name: String, value: String)]
  let content: AnswerContent

  /// Reads a part: the rest of the line of the boundary, headers, an empty line, the content.
  init?(_ bytes: ArraySlice<UInt8>) {
    guard let head = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
    headers = String(decoding: bytes[..<head.lowerBound], as: UTF8.self).split(separator: "\r\n").compactMap {
      line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      return (String(line[..<colon]), String(line[line.index(after: colon)...].trimmingPrefix(" ")))
    }
    let headers = headers
    content = AnswerContent(Array(bytes[head.upperBound...])) { name in
      headers.first { $0.name.lowercased() == name }?.value
    }
  }

  func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }

  /// What tells this part from others beside it: the name of an attachment, or a revision.
  var key: String {
    if let disposition = header("content-disposition"), let start = disposition.range(of: "filename=") {
      return String(disposition[start.upperBound...])
    }
    switch content {
    case .json(let value): return value["_rev"].string ?? value["missing"].string ?? ""
    case .parts(let parts): return parts.first?.key ?? ""
    default: return ""
    }
  }
}

/// What gzip has compressed; nil if it isn't gzip.
func gunzipped(_ bytes: [UInt8]) -> [UInt8]? {
  var stream = z_stream()
  guard inflateInit2_(&stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
    return nil
  }
  defer { inflateEnd(&stream) }
  var input = bytes
  var output: [UInt8] = []
  var piece = [UInt8](repeating: 0, count: 64 << 10)
  return input.withUnsafeMutableBufferPointer { input in
    stream.next_in = input.baseAddress
    stream.avail_in = UInt32(input.count)
    while true {
      let (code, count) = piece.withUnsafeMutableBufferPointer { target in
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(target.count)
        let code = inflate(&stream, Z_NO_FLUSH)
        return (code, target.count - Int(stream.avail_out))
      }
      output += piece[..<count]
      if code == Z_STREAM_END { return output }
      guard code == Z_OK, count > 0 || stream.avail_in > 0 else { return nil }
    }
  }
}
