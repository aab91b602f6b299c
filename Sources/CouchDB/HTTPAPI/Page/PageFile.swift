import Bytes
import CPage
import Fleece
import HTTP
import Query

/// A file of the page for people (docs/http-page.md). All are in the program, so that no name in a request reaches the file system.
struct PageFile: Sendable {
  let bytes: [UInt8]
  /// The media type.
  let type: String
  /// The tag of these bytes.
  let tag: String

  init(_ bytes: [UInt8], type: String) {
    self.bytes = bytes
    self.type = type
    tag = bytes.withUnsafeBytes { "\"\(String(ByteHash.of($0, 0), radix: 16))\"" }
  }

  /// The name of the file that a path without a name leads to.
  static let index = ByteString("index.html")

  /// All files by their names.
  static let all: [ByteString: PageFile] = {
    var files: [ByteString: PageFile] = [:]
    var number = 0
    while let file = page_file(number)?.pointee, let name = file.name {
      let name = String(cString: name)
      let bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.length))
      files[ByteString(name)] = PageFile(bytes, type: mediaType(of: name))
      number += 1
    }
    files[ByteString("vocabulary.json")] = PageFile(vocabulary, type: "application/json")
    return files
  }()

  /// What the page completes in a query: the words that the parser knows.
  private static var vocabulary: [UInt8] {
    let value: JSONValue = [
      "keywords": .array(QueryVocabulary.keywords.map { .string($0) }),
      "functions": .array(QueryVocabulary.functions.map { .string($0) }),
    ]
    return (try? value.jsonText()) ?? []
  }

  private static func mediaType(of name: String) -> String {
    switch name.split(separator: ".").last {
    case "html": "text/html; charset=utf-8"
    case "css": "text/css; charset=utf-8"
    case "js": "text/javascript; charset=utf-8"
    case "svg": "image/svg+xml"
    default: "application/octet-stream"
    }
  }
}
