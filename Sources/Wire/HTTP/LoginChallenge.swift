extension HTTPHeader {
  /// What a refusal says about logins to who has sent `headers`: `challenge`, or what a page wants its browser to be told, in
  /// `X-CouchDB-WWW-Authenticate`.
  ///
  /// Nil for clients that ask for JSON, as in CouchDB, and for scripts of pages. A browser would answer a challenge of basic authentication with
  /// a dialog of its own, above the page's, and clients that ask for JSON don't wait for one.
  package static func loginChallenge(_ challenge: HTTPHeader, for headers: HTTPHeaders) -> HTTPHeader? {
    if let wanted = headers.first("x-couchdb-www-authenticate") {
      return HTTPHeader("WWW-Authenticate", wanted)
    }
    if headers.acceptsJSON || headers.first("origin") != nil { return nil }
    // Of somebody who has typed an address, it is "navigate": there, the dialog is a help.
    if let mode = headers.first("sec-fetch-mode"), mode.lowercased() != "navigate" { return nil }
    return challenge
  }
}

extension HTTPHeaders {
  /// Whether the client names JSON among what it accepts.
  fileprivate var acceptsJSON: Bool {
    all("accept").contains { value in
      value.split(separator: ",").contains { range in
        range.split(separator: ";").first?.trimmed.lowercased() == "application/json"
      }
    }
  }
}
