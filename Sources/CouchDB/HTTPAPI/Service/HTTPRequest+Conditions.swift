import HTTP

// What a client says of the answers that it takes (RFC 9110, 12.5 and 13.1).

extension HTTPRequest {
  private static let choosable = ["GET", "HEAD", "PUT", "DELETE", "COPY"]

  /// Takes the method that `X-HTTP-Method-Override` names, as clients ask that have only `POST`. (A page of another origin may
  /// send that header only after it has asked.) The client of a `POST` expects a body: `HEAD` is `GET`.
  mutating func chooseMethod() {
    guard method == "POST", let chosen = headers.first("x-http-method-override"),
      Self.choosable.contains(where: { $0.hasSameBytes(as: chosen) })
    else { return }
    method = chosen == "HEAD" ? "GET" : chosen
  }

  /// Whether the client takes a media type: it says so, or says nothing.
  func accepts(_ type: String) -> Bool {
    let values = headers.all("accept")
    guard !values.isEmpty else { return true }
    let family = type.prefix { $0 != "/" } + "/*"
    for item in values.joined(separator: ",").split(separator: ",") {
      let range = HTTPMediaType(item)
      guard [type, String(family), "*/*"].contains(range.name) else { continue }
      if let weight = range[parameter: "q"].flatMap(Double.init), weight <= 0 { continue }
      return true
    }
    return false
  }

  /// Whether the client takes gzip.
  var acceptsGzip: Bool {
    var weightOfOthers = 0.0
    for coding in headers.tokens("accept-encoding") {
      let range = HTTPMediaType(coding)
      let weight = range[parameter: "q"].map { Double($0) ?? 0 } ?? 1
      switch range.name {
      case "gzip", "x-gzip": return weight > 0
      case "*": weightOfOthers = weight
      default: break
      }
    }
    return weightOfOthers > 0
  }

  /// Whether `If-None-Match` has a tag, which includes its quotes: the client has that entity.
  func matches(_ tag: String) -> Bool {
    headers.all("if-none-match").flatMap { $0.split(separator: ",") }.contains { candidate in
      var candidate = candidate.trimmed
      if candidate.hasPrefix("W/") { candidate = String(candidate.dropFirst(2)) }
      return candidate == "*" || candidate.utf8.elementsEqual(tag.utf8)
    }
  }

  /// Whether a range is to be sent although the client may have another entity: it names none, or this one.
  func wantsRange(of tag: String) -> Bool {
    headers.first("if-range").map { $0.trimmed.utf8.elementsEqual(tag.utf8) } ?? true
  }
}
