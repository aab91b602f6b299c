import Foundation
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// TLS by a server in Python, with certificates by the openssl command. Skipped without them.
@Suite(.enabled(if: canUseTLS, "there is no python3 with ssl, or no openssl"))
struct TLSTests {
  private func backend() throws -> RawServer {
    try RawServer { connection, _ in
      connection.upgrade()
      connection.echo()
    }
  }

  private func attempt(
    _ name: String, _ trust: WebSocketRequest.Trust, host: String = "127.0.0.1", exchanging: Bool = false
  ) async throws -> TransportClose? {
    let backend = try backend()
    let front = try await TLSFront(try Certificates.shared.get(), name, backend)
    var request = request("wss://\(host):\(front.port)/", ["p"])
    request.trust = trust
    let result = await connect(request)
    if exchanging, case .success(let connection) = result {
      await exchange(connection.transport)
      expect(connection.certificateFingerprint?.count, equals: 32)
    }
    // Nothing is sent to a server that isn't trusted.
    if result.failure != nil { expect(backend.requests.withLock { $0 }, equals: []) }
    return result.failure
  }

  @Test func aPinnedAuthorityIsTrustedForItsHosts() async throws {
    let certificates = try Certificates.shared.get()
    let trust = WebSocketRequest.Trust.pinned(certificates.bytes("ca.pem"))
    #expect(try await attempt("localhost", trust, exchanging: true) == nil)
    #expect(try await attempt("localhost", trust, host: "localhost") == nil)
    #expect(try await attempt("other", trust)?.kind == "network 15")
    #expect(try await attempt("self", trust)?.domain == .network)
    #expect(try await attempt("expired", trust)?.kind == "network 7")
  }

  @Test func aPinnedCertificateIsTrustedForAnyHost() async throws {
    let certificates = try Certificates.shared.get()
    #expect(try await attempt("self", .pinned(certificates.bytes("self.der"))) == nil)
    #expect(try await attempt("self", .pinned(certificates.bytes("self.pem")), exchanging: true) == nil)
    #expect(try await attempt("other", .pinned(certificates.bytes("other.pem"))) == nil)
    let both = certificates.bytes("self2.pem") + certificates.bytes("self.pem")
    #expect(try await attempt("self", .pinned(both)) == nil)
    #expect(try await attempt("self", .pinned(certificates.bytes("self2.pem")))?.domain == .network)
    #expect(try await attempt("localhost", .pinned(certificates.bytes("other.pem")))?.domain == .network)
    #expect(try await attempt("self", .pinned([1, 2, 3]))?.kind == "network 8")
  }

  @Test func onlySelfSignedCertificatesAreTrustedWhenAskedFor() async throws {
    #expect(try await attempt("self", .onlySelfSigned, exchanging: true) == nil)
    #expect(try await attempt("localhost", .onlySelfSigned)?.kind == "network 8")
  }

  @Test func theSystemTrustsNoneOfThese() async throws {
    #expect(try await attempt("self", .system)?.kind == "network 11")
    #expect(try await attempt("localhost", .system)?.kind == "network 11")
  }

  @Test func theFingerprintIsThatOfTheCertificate() async throws {
    let certificates = try Certificates.shared.get()
    let front = try await TLSFront(certificates, "self", try backend())
    var request = request("wss://127.0.0.1:\(front.port)/")
    request.trust = .onlySelfSigned
    let connection = try await connect(request).get()
    connection.transport.close(.normal)
    expect(
      connection.certificateFingerprint, equals: CertificateBytes.fingerprint(certificates.bytes("self.der")))
  }

  /// Whether connecting fails in a way. With TLS 1.3 the refusal comes after the handshake, and the end of the socket may
  /// overtake it.
  private func isRefused(_ request: WebSocketRequest, _ kind: String) async -> Bool {
    for _ in 0..<50 {
      let found = await connect(request).failure?.kind
      if found == kind { return true }
      guard let found, found == "webSocket 400" || found.hasPrefix("posix") else { return false }
    }
    return false
  }

  @Test func aClientShowsItsCertificate() async throws {
    let certificates = try Certificates.shared.get()
    let front = try await TLSFront(
      certificates, "localhost", try backend(), clients: certificates.path("ca.pem"))
    var request = request("wss://127.0.0.1:\(front.port)/")
    request.trust = .pinned(certificates.bytes("ca.pem"))
    let pem = certificates.bytes("jane.pem")
    let identities: [WebSocketRequest.Identity] = [
      .pem(certificate: pem, key: Secret(certificates.text("jane.key"))),
      .pem(certificate: pem, key: Secret(certificates.text("jane.encrypted.key")), password: "key-word"),
      .pkcs12(certificates.bytes("jane.p12"), password: "p12-word"),
      .pkcs12File(certificates.path("jane.p12"), password: "p12-word"),
    ]
    for identity in identities {
      request.identity = identity
      #expect(await connect(request).failure == nil)
    }
    request.identity = nil
    #expect(await isRefused(request, "network 9"))
    request.identity = .pem(
      certificate: certificates.bytes("self.pem"), key: Secret(certificates.text("self.key")))
    #expect(await isRefused(request, "network 10"))
    let unreadable: [WebSocketRequest.Identity] = [
      .pem(certificate: pem, key: Secret(certificates.text("jane.encrypted.key")), password: "wrong"),
      .pem(certificate: pem, key: Secret(certificates.text("jane.encrypted.key"))),
      .pem(certificate: [], key: ""), .pkcs12(certificates.bytes("jane.p12"), password: "wrong"),
      .pkcs12([1, 2, 3]), .pkcs12File("/no/such/file"),
    ]
    for identity in unreadable {
      request.identity = identity
      #expect(await connect(request).failure?.kind == "network 10")
    }
  }

  @Test func aServerWithoutTLSFailsTheHandshake() async throws {
    let server = try RawServer { connection, _ in
      connection.write("HTTP/1.1 400 no\r\n\r\n")
      _ = connection.readAll()
    }
    let url = server.url().replacingOccurrences(of: "ws:", with: "wss:")
    #expect(await connect(request(url)).failure?.kind == "network 6")
  }

  @Test func manyMessagesGoBothWaysThroughTLS() async throws {
    let front = try await TLSFront(try Certificates.shared.get(), "self", try backend())
    var request = request("wss://127.0.0.1:\(front.port)/")
    request.trust = .onlySelfSigned
    let transport = try await connect(request).get().transport
    // So much that writing has to wait, with other bytes behind those that wait.
    let messages = (0..<4000).map { [UInt8](repeating: UInt8($0 & 255), count: 4000 + $0) }
    async let received = transport.messages(messages.count)
    for start in stride(from: 0, to: messages.count, by: 40) {
      #expect(await transport.send(Array(messages[start..<start + 40])) == nil)
    }
    #expect(await received == messages)
    transport.close(.normal)
    #expect(await transport.waitForEnd() == .normal)
  }

  @Test func aServerThatGoesAwayUnderTLSIs1006OrAnErrorOfTheSystem() async throws {
    let backend = try RawServer { connection, _ in connection.upgrade() }
    let front = try await TLSFront(try Certificates.shared.get(), "self", backend)
    var request = request("wss://127.0.0.1:\(front.port)/")
    request.trust = .onlySelfSigned
    let transport = try await connect(request).get().transport
    // Writing to it is an error, and no signal.
    while await transport.send([[UInt8](repeating: 0, count: 100_000)]) == nil {}
    let end = await transport.waitForEnd()
    expect(end.isTransient)
    expect(end.code == 1006 || end.domain == .posix)
  }
}
