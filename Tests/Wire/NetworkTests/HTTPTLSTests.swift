import Foundation
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// The client of HTTP over TLS, with the servers of `TLSTests`.
@Suite(.enabled(if: canUseTLS, "there is no python3 with ssl, or no openssl"))
struct HTTPTLSTests {
  private func attempt(
    _ name: String, _ trust: WebSocketRequest.Trust, host: String = "127.0.0.1"
  ) async throws -> TransportClose? {
    let backend = try RawServer { connection, _ in
      while connection.readHead().hasSuffix("\r\n\r\n") {
        connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8))
      }
    }
    let front = try await TLSFront(try Certificates.shared.get(), name, backend)
    var settings = HTTPClientSettings()
    settings.proxy = .none
    settings.trust = trust
    settings.authentication = .basic(name: "jane", password: "secret")
    let client = try HTTPClient(settings)
    let url = try #require(WebSocketURL("https://\(host):\(front.port)/db"))
    var failure: TransportClose?
    // The second request has the connection of the first one.
    for _ in 0..<2 {
      let result = await withCheckedContinuation { continuation in
        client.collect(HTTPClientRequest("GET", url), limit: 100) { continuation.resume(returning: $0) }
      }
      switch result {
      case .success(let answer): expect(answer.status == 200 && answer.body == Array("ok".utf8))
      case .failure(let error): failure = error
      }
    }
    // Nothing is sent to a server that isn't trusted.
    expect(backend.requests.withLock { $0.count }, equals: (failure == nil ? 2 : 0))
    return failure
  }

  @Test("a pinned authority is trusted for its hosts, and a pinned certificate for any") func pinned()
    async throws
  {
    let certificates = try Certificates.shared.get()
    let authority = WebSocketRequest.Trust.pinned(certificates.bytes("ca.pem"))
    #expect(try await attempt("localhost", authority) == nil)
    #expect(try await attempt("localhost", authority, host: "localhost") == nil)
    #expect(try await attempt("other", authority)?.code == NetworkCode.tlsCertificateNameMismatch.rawValue)
    #expect(try await attempt("self", .pinned(certificates.bytes("self.der"))) == nil)
    #expect(try await attempt("other", .pinned(certificates.bytes("other.pem"))) == nil)
    #expect(try await attempt("self", .pinned(certificates.bytes("self2.pem")))?.domain == .network)
  }

  @Test("self-signed certificates are trusted only if that is wanted") func selfSigned() async throws {
    #expect(try await attempt("self", .onlySelfSigned) == nil)
    #expect(
      try await attempt("localhost", .onlySelfSigned)?.code == NetworkCode.tlsCertificateUntrusted.rawValue)
    #expect(try await attempt("self", .system)?.code == NetworkCode.tlsCertificateUnknownRoot.rawValue)
  }
}
