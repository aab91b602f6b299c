import TestTools
import Testing

@testable import Network

@Suite struct URLTests {
  @Test func urlsAreTakenApart() throws {
    let url = try #require(WebSocketURL("wss://Example.com:4984/db/_blipsync?a=b#c"))
    expect(
      (url.isSecure, url.host, url.port, url.target) == (true, "example.com", 4984, "/db/_blipsync?a=b"))
    expect(url.hostHeader, equals: "example.com:4984")
    expect("\(url)", equals: "wss://example.com:4984/db/_blipsync")
    expect(WebSocketURL("ws://h")?.target, equals: "/")
    expect(WebSocketURL("ws://h?x")?.target, equals: "/?x")
    expect(WebSocketURL("ws://h")?.port, equals: 80)
    expect(WebSocketURL("https://h")?.port, equals: 443)
    expect(WebSocketURL("http://h"), equals: WebSocketURL("ws://h:80/"))
    expect(WebSocketURL("ws://[::1]:99/")?.host, equals: "::1")
    expect(WebSocketURL("ws://[::1]:99/")?.hostHeader, equals: "[::1]:99")
  }

  @Test(arguments: [
    "", "ws:", "ws://", "ws:///db", "ftp://h/", "h/db", "ws://user:password@h/", "ws://h:0/", "ws://h:65536/",
    "ws://h:x/", "ws://h:1:2/", "ws://a b/", "ws://h/a b", "ws://h/\u{E4}", "ws://[::1/", "ws://[h]/",
    "ws://h\r\nX: y/",
    "ws://h:-1/", "ws://" + String(repeating: "a", count: 254),
    "ws://h/" + String(repeating: "a", count: 8192),
  ])
  func whatIsNoURLIsRefused(_ text: String) { expect(WebSocketURL(text) == nil) }

  @Test func locationsAreResolved() throws {
    let url = try #require(WebSocketURL("ws://h:1/a/b?c"))
    let cases = [
      ("http://other/x", "ws://other/x"), ("https://other/x", "wss://other/x"), ("//other/x", "ws://other/x"),
      ("/x?y", "ws://h:1/x?y"), ("x", "ws://h:1/a/x"), ("?y", "ws://h:1/a/b?y"),
      ("../x/./y?../z", "ws://h:1/x/y?../z"), ("../../../x/..", "ws://h:1/"), (".", "ws://h:1/a/"),
      ("/x?u=http://z/", "ws://h:1/x?u=http://z/"),
    ]
    for (location, expected) in cases {
      expect(url.resolve(location), equals: WebSocketURL(expected), "\(location)")
    }
    for location in ["", "ftp://h/", "http://user@h/", "mailto://x"] { #expect(url.resolve(location) == nil) }
  }

  @Test func secretsStayWithTheirHostAndUnderTLS() throws {
    func shares(_ from: String, _ to: String) throws -> Bool {
      try #require(WebSocketURL(from)).shares(secretsWith: try #require(WebSocketURL(to)))
    }
    try expect(shares("ws://h/a", "ws://h/b"))
    try expect(shares("ws://h/", "wss://h/"))
    try expect(shares("wss://h/", "wss://h/"))
    try expect(!shares("wss://h/", "ws://h/"))
    try expect(!shares("ws://h/", "ws://other/"))
    try expect(!shares("ws://h:1/", "ws://h:2/"))
    try expect(!shares("wss://h/", "wss://h:444/"))
  }
}
