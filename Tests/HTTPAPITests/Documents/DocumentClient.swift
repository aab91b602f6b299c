import Bytes
import Fleece
import HTTPAPI
import Touchstone

extension APIClient {
  /// Asks with a body of JSON.
  func send(
    _ method: String, _ target: String, _ json: String = "", headers: [(String, String)] = []
  ) throws -> Response {
    var all = headers
    if method == "POST", !headers.contains(where: { $0.0.lowercased() == "content-type" }) {
      all.append(("Content-Type", "application/json"))
    }
    return try ask(method, target, headers: all, body: Array(json.utf8))
  }

  /// Asks for JSON.
  func get(_ target: String, headers: [(String, String)] = []) throws -> Response {
    try ask("GET", target, headers: [("Accept", "application/json")] + headers)
  }

  /// Saves a document and returns its revision.
  @discardableResult
  func save(_ target: String, _ json: String, headers: [(String, String)] = []) throws -> String {
    try send("PUT", target, json, headers: headers).json()["rev"].string ?? ""
  }
}

extension Response {
  /// The word and the reason of an error.
  var error: [String] {
    get throws {
      let json = try json()
      return [json["error"].string ?? "", json["reason"].string ?? ""]
    }
  }
}

/// The parts of a multipart body: the headers as they stand and the bytes.
func parts(of body: [UInt8], _ boundary: String) -> [(head: String, bytes: [UInt8])] {
  let text = String(decoding: body.map { $0 < 0x80 ? $0 : 0x3F }, as: UTF8.self)
  var found: [(head: String, bytes: [UInt8])] = []
  let delimiter = "--" + boundary
  var start: String.Index?
  var index = text.startIndex
  while let range = text.range(of: delimiter, in: index) {
    if let start {
      let part = String(text[start..<range.lowerBound].dropFirst(2).dropLast(2))
      let offset = text.utf8.distance(from: text.startIndex, to: start) + 2
      let end = text.utf8.distance(from: text.startIndex, to: range.lowerBound) - 2
      if let blank = part.range(of: "\r\n\r\n", in: part.startIndex) {
        let head = String(part[..<blank.lowerBound])
        let skipped = part.utf8.distance(from: part.startIndex, to: blank.upperBound)
        found.append((head, Array(body[(offset + skipped)..<end])))
      }
    }
    start = range.upperBound
    index = range.upperBound
  }
  return found
}

extension String {
  /// Where a text is, from an index on.
  fileprivate func range(of wanted: String, in start: String.Index) -> Range<String.Index>? {
    let all = Array(utf8)
    let pattern = Array(wanted.utf8)
    var offset = utf8.distance(from: startIndex, to: start)
    while offset + pattern.count <= all.count {
      if all[offset..<offset + pattern.count].elementsEqual(pattern) {
        let lower = utf8.index(startIndex, offsetBy: offset)
        return lower..<utf8.index(lower, offsetBy: pattern.count)
      }
      offset += 1
    }
    return nil
  }
}
