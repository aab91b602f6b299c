import Fleece
import HTTP
import Views

extension HTTPRequest {
  /// The memory that it takes for its body; nil if nobody counts.
  var memory: RequestMemory? { (body as? MeteredBody)?.memory }

  /// The media type of the body, in lower case and without parameters; nil if nothing is said.
  var mediaType: String? {
    headers.first("content-type").map { $0.prefix { $0 != ";" }.trimmed.lowercased() }
  }

  /// The body, decompressed if it comes with gzip. `isReadInPieces`: no values are made of it all at once. Throws 413 if it has more than
  /// `limit` bytes or needs too much memory, 415 for other encodings, and 503 if others have the memory.
  func bodyBytes(limit: Int, isReadInPieces: Bool = false) throws -> [UInt8] {
    let body = try decodedBody()
    let tooLarge = CouchDBError(413, "too_large", "the request entity is too large")
    if let length = body.length, length > limit { throw tooLarge }
    var bytes: [UInt8] = []
    while let next = try body.read() {
      guard next.count <= limit - bytes.count else { throw tooLarge }
      // An array that grows takes up to twice its size.
      try memory?.hold(2 * next.count)
      if bytes.isEmpty { bytes = next } else { bytes += next }
    }
    if !isReadInPieces { try memory?.hold(bytes.withUnsafeBytes { JSONValue.memory(of: $0) }) }
    return bytes
  }

  /// The body, which is decompressed while it is read if it comes with gzip. Throws 415 for other encodings.
  func decodedBody() throws -> any HTTPBodySource {
    switch headers.first("content-encoding")?.lowercased() {
    case nil, "identity": return body
    case "gzip", "x-gzip": return try GunzippedBody(body)
    case let other?:
      throw CouchDBError(415, "bad_content_type", "\(other) is not a supported content encoding.")
    }
  }

  /// The value of the body, which has to be said to be JSON.
  func jsonBody(limit: Int) throws -> JSONValue {
    guard mediaType == "application/json" else {
      throw CouchDBError(415, "bad_content_type", "Content-Type must be application/json")
    }
    return try JSONValue(body: bodyBytes(limit: limit))
  }
}

extension JSONValue {
  /// The most values in the body of a request, members and items included. A value takes many times the memory of its text.
  private static let maximumBodyValues = 4_000_000
  /// The memory that a value takes besides its text, in bytes, and what is made of it.
  private static let valueBytes = 120

  /// Parses the body of a request. Throws 400 if it isn't JSON, and 413 if it has too many values.
  init(body: [UInt8]) throws {
    try Self.checkCount(body)
    do { self = try body.withUnsafeBytes { bytes throws(FleeceError) in try JSONValue(json: bytes) } } catch {
      throw CouchDBError(400, "bad_request", "invalid UTF-8 JSON")
    }
  }

  /// Throws 413 if the body of a request has too many values.
  static func checkCount(_ body: [UInt8]) throws {
    guard body.count > maximumBodyValues else { return }
    guard body.withUnsafeBytes({ JSONMeasure($0).values }) <= maximumBodyValues else {
      throw CouchDBError(413, "too_large", "the request has more than \(maximumBodyValues) values")
    }
  }

  /// The memory that the values in a text take at most, in bytes.
  static func memory(of text: UnsafeRawBufferPointer) -> Int {
    text.count + JSONMeasure(text).values * valueBytes
  }
}
