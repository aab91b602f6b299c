import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneSync
import Transport
import WebSocket

@testable import Replication
@testable import ReplicationBLIP

@Suite("Cookies") struct CookieTests {
  private let databases = TestDatabases()
  private static let home = CookieJar.Place(host: "Www.Example.com", path: "/a/db/_blipsync", isSecure: true)

  private func place(_ host: String, _ path: String = "/a/db/_blipsync", isSecure: Bool = true)
    -> CookieJar.Place
  {
    CookieJar.Place(host: host, path: path, isSecure: isSecure)
  }

  private func cookie(_ header: String, _ place: CookieJar.Place = home) -> Cookie? {
    Cookie(header, from: place, at: 1_000)
  }

  @Test("what a server sets is read by the rules of RFC 6265") func reading() throws {
    let plain = try #require(cookie("a=b"))
    expect(plain, equals: Cookie(name: "a", value: "b", domain: "www.example.com", path: "/a/db"))
    expect(cookie(" a = b=c ; Path=/x;HttpOnly")?.value == "b=c" && cookie("a=b; Path=/x")?.path == "/x")
    expect(cookie("a=b; path=x")?.path == "/a/db" && cookie("a=b", place("h", "/db"))?.path == "/")
    expect(cookie("a=b; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:01 GMT")?.expires, equals: 1_060)
    expect(cookie("a=b; Max-Age=-5")?.expires == 1_000 && cookie("a=b; Max-Age=x")?.expires == nil)
    expect(cookie("a=b; Domain=.EXAMPLE.com")?.domain, equals: "example.com")
    expect(cookie("a=b; Domain=example.com")?.isHostOnly, equals: false)
    expect(cookie("a=b; Secure")?.isSecure, equals: true)
    for wrong in [
      "", "a", "=b", "a b=c", "a=b; Domain=com", "a=b; Domain=other.com", "a=b; Domain=ample.com", "a=\u{1}",
      "a=" + String(repeating: "x", count: 5_000),
    ] { expect(cookie(wrong) == nil, "\(wrong.prefix(40))") }
    expect(cookie("a=b; Secure", place("h", isSecure: false)) == nil)
    expect(cookie("a=b; Domain=0.0.1", place("127.0.0.1")) == nil)
    expect(cookie("a=b; Domain=localhost", place("localhost"))?.isHostOnly, equals: true)
  }

  @Test(
    "dates of all forms are read",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
      ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01-Jan-1970 00:00:00 GMT", 0),
      ("Tue, 29 Feb 2028 12:00:00 GMT", 1_835_438_400), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
      ("never", nil), ("32 Jan 2000 00:00:00", nil), ("1 Jan 2000 24:00:00", nil), ("", nil),
    ] as [(String, Int64?)])
  func dates(_ text: String, _ seconds: Int64?) { expect(Cookie.date(text), equals: seconds) }

  @Test("a cookie goes to its host, its paths and its kind of connection") func going() throws {
    let host = try #require(cookie("a=b"))
    let domain = try #require(cookie("a=b; Domain=example.com; Path=/a/; Secure; Max-Age=10"))
    func goes(_ cookie: Cookie, _ place: CookieJar.Place, _ now: Int64 = 1_000) -> Bool {
      cookie.goes(to: place, at: now)
    }
    expect(goes(host, Self.home) && goes(host, place("www.example.com", "/a/db")))
    expect(!goes(host, place("example.com")) && !goes(host, place("x.www.example.com")))
    expect(!goes(host, place("www.example.com", "/a/db2")) && !goes(host, place("www.example.com", "/a")))
    expect(goes(host, place("www.example.com", isSecure: false)))
    expect(goes(domain, place("example.com")) && goes(domain, place("x.y.example.com", "/a/other")))
    expect(!goes(domain, place("badexample.com")) && !goes(domain, place("example.com", isSecure: false)))
    expect(goes(domain, Self.home, 1_009) && !goes(domain, Self.home, 1_010))
  }

  @Test(
    "those that last are kept in the database, the others for the replicator",
    arguments: [EngineName.sqlite, .lmdb])
  func kept(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let now = Lock<Int64>(1_000)
    func jar() -> CookieJar { CookieJar(database) { now.withLock { $0 } } }
    let first = jar()
    expect(first.header(to: Self.home) == nil)
    first.take(["a=1", "b=2; Max-Age=100", "c=3; Max-Age=50; Path=/", "d"], from: Self.home)
    expect(first.header(to: Self.home), equals: "b=2; a=1; c=3")
    expect(first.header(to: Self.home, without: "b"), equals: "a=1; c=3")
    expect(jar().header(to: Self.home), equals: "b=2; c=3")
    expect(jar().header(to: place("other.com")) == nil)
    // Later ones take the place of earlier ones, and an expired one ends it.
    jar().take(["b=4; Max-Age=100", "c=; Max-Age=0; Path=/"], from: Self.home)
    expect(jar().header(to: Self.home), equals: "b=4")
    now.withLock { $0 = 1_100 }
    expect(jar().header(to: Self.home) == nil)
    // Their number is bounded.
    for number in 0..<200 { jar().take(["n\(number)=1; Max-Age=1000"], from: Self.home) }
    expect(jar().header(to: Self.home)?.split(separator: ";").count, equals: CookieJar.maximumCount)
    try expect(database.check(deep: true), equals: [])
  }

  /// A server that upgrades each connection, sets a cookie, and goes away.
  private final class CookieServer: Sendable {
    let port: Int
    private let descriptor: CInt
    let cookies = Lock<[String]>([])

    init() throws {
      let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      var length = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isBound = withUnsafeMutablePointer(to: &address) { address in
        address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
          bind(descriptor, address, length) == 0 && listen(descriptor, 16) == 0
            && getsockname(descriptor, address, &length) == 0
        }
      }
      self.descriptor = descriptor
      try #require(isBound)
      port = Int(UInt16(bigEndian: address.sin_port))
      let thread = Thread { [self] in
        while case let client = accept(descriptor, nil, nil), client >= 0 { serve(client) }
      }
      thread.start()
    }

    private func serve(_ client: CInt) {
      defer { close(client) }
      var head = ""
      var chunk = [UInt8](repeating: 0, count: 4_096)
      while !head.contains("\r\n\r\n"), case let count = read(client, &chunk, chunk.count), count > 0 {
        head += String(decoding: chunk[..<count], as: UTF8.self)
      }
      func value(_ name: String) -> String? {
        head.components(separatedBy: "\r\n").first { $0.lowercased().hasPrefix(name + ": ") }
          .map { String($0.dropFirst(name.count + 2)) }
      }
      cookies.withLock { $0.append(value("cookie") ?? "none") }
      let answer =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        + "Sec-WebSocket-Accept: \(WebSocketKey.accept(value("sec-websocket-key") ?? "") ?? "")\r\n"
        + "Sec-WebSocket-Protocol: BLIP_3+CBMobile_3\r\nSet-Cookie: sticky=\(cookies.withLock { $0.count }); Max-Age=3600\r\n\r\n"
      _ = answer.withCString { write(client, $0, strlen($0)) }
    }

    func stop() { shutdown(descriptor, CInt(SHUT_RDWR)) }
  }

  @Test("the next connection carries what the server has set, also that of another replicator") func sent()
    throws
  {
    let server = try CookieServer()
    defer { server.stop() }
    let local = try databases.open(.lmdb)
    var configuration = ReplicatorConfiguration(local, try .url("ws://127.0.0.1:\(server.port)/db"))
    configuration.maximumRetries = 0
    for _ in 0..<2 { _ = try run(configuration) }
    configuration.connection.authenticator = .session(id: "s")
    _ = try run(configuration)
    configuration.connection.authenticator = .session(id: "mine", cookieName: "sticky")
    _ = try run(configuration)
    expect(
      server.cookies.withLock { $0 },
      equals: ["none", "sticky=1", "sticky=2; SyncGatewaySession=s", "sticky=mine"])
  }
}
