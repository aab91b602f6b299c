import HTTP
import TestSupport
import Testing

@Suite struct MultipartParserTests {
  /// What a parser found: the headers and bytes of each part.
  private struct Found: Equatable {
    var parts: [String] = []
    var error: MultipartError?
  }

  private func parse(
    _ body: String, boundary: String = "b", pieces: [Int], limits: MultipartParser.Limits = .init()
  ) -> Found {
    var found = Found()
    let bytes = Array(body.utf8)
    do {
      var parser = try MultipartParser(boundary: boundary, limits: limits)
      var start = 0
      for end in pieces + [bytes.count] where end > start {
        try bytes[start..<end].withUnsafeBytes { piece in
          try parser.parse(piece) { event in
            switch event {
            case .begin(let headers):
              found.parts.append(headers.all.map { "\($0.name)=\($0.value)" }.joined(separator: ",") + "|")
            case .bytes(let bytes):
              found.parts[found.parts.count - 1] += String(decoding: bytes, as: UTF8.self)
            case .end: found.parts[found.parts.count - 1] += "."
            }
          }
        }
        start = end
      }
      try parser.finish()
    } catch { found.error = error as? MultipartError }
    return found
  }

  private let body =
    "pre\r\n--b  \r\nContent-Type: text/plain\r\nX-A:  1 \r\n\r\nfirst\r\n--bx\r\n--c\r\r\n\r\n--b\r\n\r\n\r\n--b\t\r\nA: b\r\n\r\n\r\n\r\n--b--\r\nafter"
  private let parts = ["content-type=text/plain,x-a=1|first\r\n--bx\r\n--c\r\r\n.", "|.", "a=b|\r\n."]

  @Test("every place of one or two cuts gives the same parts")
  func cuts() {
    let count = body.utf8.count
    expect(parse(body, pieces: []), equals: Found(parts: parts))
    for first in 0...count {
      expect(parse(body, pieces: [first]), equals: Found(parts: parts), "cut at \(first)")
      for second in stride(from: first, through: count, by: 3) {
        expect(
          parse(body, pieces: [first, second]), equals: Found(parts: parts), "cuts at \(first) and \(second)")
      }
    }
    expect(parse(body, pieces: Array(0..<count)), equals: Found(parts: parts))
  }

  @Test("a body that is cut off anywhere before its last boundary isn't whole")
  func truncated() {
    let bytes = Array(body.utf8)
    guard let end = (0..<bytes.count - 4).last(where: { bytes[$0..<$0 + 5].elementsEqual("--b--".utf8) })
    else {
      Issue.record("no last boundary")
      return
    }
    for count in 0..<(end + 5) {
      let found = parse(String(decoding: bytes[..<count], as: UTF8.self), pieces: [])
      expect(found.error, equals: .endsEarly, "\(count) bytes")
    }
    expect(parse(String(decoding: bytes[..<(end + 5)], as: UTF8.self), pieces: []).error == nil)
  }

  @Test("the body may begin with its boundary")
  func noPreamble() {
    expect(parse("--b\r\n\r\nx\r\n--b--", pieces: []), equals: Found(parts: ["|x."]))
    expect(parse("--b--", pieces: []), equals: Found())
  }

  @Test("limits hold")
  func limits() {
    var limits = MultipartParser.Limits()
    limits.headerBytes = 20
    limits.parts = 2
    limits.preambleBytes = 10
    let long = String(repeating: "x", count: 30)
    expect(
      parse("--b\r\nA: \(long)\r\n\r\nx\r\n--b--", pieces: [], limits: limits).error, equals: .longHeaders)
    expect(parse("--b\r\nA: \(long)", pieces: [], limits: limits).error, equals: .longHeaders)
    expect(
      parse("--b\(String(repeating: " ", count: 30))\r\n\r\nx\r\n--b--", pieces: [], limits: limits).error,
      equals: .longHeaders)
    expect(
      parse("--b\r\n\r\n\r\n--b\r\n\r\n\r\n--b\r\n\r\n\r\n--b--", pieces: [], limits: limits).error,
      equals: .tooManyParts)
    expect(parse(long, pieces: [], limits: limits).error, equals: .longPreamble)
    expect(parse("--b\r\nnothing\r\n\r\n", pieces: []).error, equals: .malformedHeader)
    expect(parse("--b\r\n: x\r\n\r\n", pieces: []).error, equals: .malformedHeader)
    expect(parse("", boundary: "", pieces: []).error, equals: .invalidBoundary)
    expect(
      parse("", boundary: String(repeating: "b", count: 201), pieces: []).error, equals: .invalidBoundary)
  }

  @Test("media types and their parameters")
  func mediaTypes() {
    let type = HTTPMediaType("Multipart/Related ; Boundary=\"a;\\\"b\"; type=x")
    expect(type.name, equals: "multipart/related")
    expect(type[parameter: "boundary"], equals: "a;\"b")
    expect(type[parameter: "type"], equals: "x")
    expect(type[parameter: "charset"] == nil)
    expect(HTTPMediaType("text/plain;charset").name, equals: "text/plain")
    expect(HTTPMediaType("").name, equals: "")
  }
}
