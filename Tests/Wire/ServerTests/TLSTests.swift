import HTTP
import Foundation
import Logs
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

@Suite struct TLSTests {
  /// Curl's output, with the status in its last line.
  private func curl(_ arguments: [String]) -> String? {
    run("curl", ["-s", "-m", "60", "-w", "\n%{http_code}"] + arguments)?.output
  }

  @Test func aSelfMadeIdentityIsKeptAndCanBePinned() throws {
    let directory = TemporaryDirectory()
    let identity = try TLSIdentity.selfMade(in: directory.path, hostNames: ["box.example", "192.0.2.7"])
    expect(identity.fingerprint.count, equals: 64)
    try expect(TLSIdentity.selfMade(in: directory.path).fingerprint, equals: identity.fingerprint)
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.file("server-key.pem"))
    expect((attributes[.posixPermissions] as? Int), equals: 0o600)
    let server = try TestServer(with: { $0.tls = identity }, echo)
    expect(server.url.hasPrefix("https://"))
    let certificate = directory.file("server-cert.pem")
    guard let answer = curl(["--cacert", certificate, "\(server.url)/a"]) else {
      print("skipped a part of aSelfMadeIdentityIsKeptAndCanBePinned: there is no curl")
      return
    }
    expect(answer, equals: "GET\n/a\n\n200")
    let port = server.port
    expect(
      curl([
        "--cacert", certificate, "--resolve", "box.example:\(port):127.0.0.1", "-H", "Host: localhost",
        "https://box.example:\(port)/",
      ])?
      .hasSuffix("200"), equals: true)
    expect(curl(["\(server.url)/"]), equals: "\n000")
    expect(curl(["-k", "--tls-max", "1.1", "\(server.url)/"]), equals: "\n000")
    // Another certificate serves new connections.
    let other = TemporaryDirectory()
    try server.server.use(TLSIdentity.selfMade(in: other.path))
    expect(curl(["--cacert", certificate, "\(server.url)/"]), equals: "\n000")
    expect(
      curl(["--cacert", other.file("server-cert.pem"), "\(server.url)/"])?.hasSuffix("200"), equals: true)
    expect(curl(["-k", "-T", certificate, "\(server.url)/"])?.contains("BEGIN CERTIFICATE"), equals: true)
  }

  @Test func certificatesAreReadAgain() throws {
    let (directory, next) = (TemporaryDirectory(), TemporaryDirectory())
    let first = try TLSIdentity.selfMade(in: directory.path)
    let second = try TLSIdentity.selfMade(in: next.path)
    let (certificate, key) = (directory.file("server-cert.pem"), directory.file("server-key.pem"))
    let server = try TestServer(with: { $0.tls = first }, echo)
    func shown() throws -> String {
      let client = try server.secureClient()
      try expect(client.get("/").status, equals: 200)
      return client.fingerprint
    }
    let open = try server.secureClient()
    try expect(open.get("/").status == 200 && open.fingerprint == first.fingerprint)
    try server.server.reloadIdentity()
    try expect(shown(), equals: first.fingerprint)
    // Files that don't fit, have nothing in them, or aren't there change nothing.
    let warnings = Lock<[String]>([])
    let sink = FunctionSink { entry in warnings.withLock { $0.append(entry.message) } }
    Log.add(sink, levels: LogLevels(.warning))
    defer { Log.remove(sink) }
    try FileManager.default.removeItem(atPath: certificate)
    #expect(throws: HTTPServerError.self) { try server.server.reloadIdentity() }
    try Data("no certificate".utf8).write(to: URL(filePath: certificate))
    #expect(throws: HTTPServerError.self) { try server.server.reloadIdentity() }
    try Data(contentsOf: URL(filePath: next.file("server-cert.pem"))).write(to: URL(filePath: certificate))
    #expect(throws: HTTPServerError.self) { try server.server.reloadIdentity() }
    try expect(shown(), equals: first.fingerprint)
    expect(server.server.fingerprint, equals: first.fingerprint)
    waitUntil { warnings.withLock { $0.count(where: { $0.contains("keeps its certificate") }) } == 3 }
    try Data(contentsOf: URL(filePath: next.file("server-key.pem"))).write(to: URL(filePath: key))
    try server.server.reloadIdentity()
    try expect(shown(), equals: second.fingerprint)
    expect(server.server.fingerprint, equals: second.fingerprint)
    // Open connections go on.
    try expect(open.get("/").status, equals: 200)
    for _ in 0..<100 { try server.server.reloadIdentity() }
    #expect(throws: HTTPServerError.self) { try TestServer().server.reloadIdentity() }
  }

  @Test func wrongFilesAreRefused() throws {
    let directory = TemporaryDirectory()
    _ = try TLSIdentity.selfMade(in: directory.path)
    let other = TemporaryDirectory()
    _ = try TLSIdentity.selfMade(in: other.path)
    let (certificate, key) = (directory.file("server-cert.pem"), directory.file("server-key.pem"))
    func code(_ certificate: String, _ key: String) -> HTTPServerError.Code? {
      do { _ = try TLSIdentity(certificateFile: certificate, keyFile: key) } catch {
        return (error as? HTTPServerError)?.code
      }
      return nil
    }
    expect(code(certificate, key) == nil)
    expect(code(directory.file("none"), key), equals: .fileUnreadable)
    expect(code(certificate, directory.file("none")), equals: .fileUnreadable)
    expect(code(key, key), equals: .fileInvalid)
    expect(code(certificate, certificate), equals: .fileInvalid)
    expect(code(certificate, other.file("server-key.pem")), equals: .fileInvalid)
    #expect(throws: HTTPServerError.self) { try TLSIdentity.selfMade(in: directory.path + "/none") }
    #expect(throws: HTTPServerError.self) {
      try TLSIdentity.selfMade(in: other.path + "/x", hostNames: ["a,IP:1.2.3.4"])
    }
  }

  @Test func clientsShowCertificates() throws {
    let directory = TemporaryDirectory()
    let identity = try TLSIdentity.selfMade(in: directory.path)
    func openssl(_ arguments: [String]) -> Bool { run("openssl", arguments)?.status == 0 }
    let (authority, authorityKey) = (directory.file("ca.pem"), directory.file("ca-key.pem"))
    guard
      openssl([
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=CA", "-keyout", authorityKey, "-out", authority,
      ])
    else {
      print("skipped clientsShowCertificates: there is no openssl command")
      return
    }
    let (client, clientKey, request) = (
      directory.file("c.pem"), directory.file("c-key.pem"), directory.file("c.csr")
    )
    expect(
      openssl([
        "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=alice",
        "-keyout", clientKey, "-out", request,
      ]))
    expect(
      openssl([
        "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authorityKey, "-CAcreateserial", "-days",
        "2", "-out", client,
      ]))
    let (stranger, strangerKey) = (directory.file("s.pem"), directory.file("s-key.pem"))
    expect(
      openssl([
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=alice", "-keyout", strangerKey, "-out", stranger,
      ]))
    let check = try ClientCertificateCheck(authorities: authority)
    let who: @Sendable (HTTPRequest, HTTPResponder) -> Void = { request, responder in
      responder.answer(
        HTTPAnswer(
          status: 200, text: "\(request.user ?? "-") \(request.clientCertificate?.commonName ?? "-")"))
    }
    let required = try TestServer(
      with: {
        $0.tls = identity
        $0.clientCertificates = .required(check)
        $0.authenticator = CertificateAuthenticator()
      }, who)
    expect(curl(["-k", "--cert", client, "--key", clientKey, required.url]), equals: "alice alice\n200")
    expect(
      curl(["-k", "--cert", stranger, "--key", strangerKey, required.url])?.hasSuffix("403"), equals: true)
    expect(curl(["-k", required.url]), equals: "\n000")
    let requested = try TestServer(
      with: {
        $0.tls = identity
        $0.clientCertificates = .requested(
          ClientCertificateCheck { $0.commonName == "alice" && $0.fingerprint.count == 64 })
      }, who)
    expect(curl(["-k", "--cert", stranger, "--key", strangerKey, requested.url]), equals: "- alice\n200")
    expect(curl(["-k", requested.url]), equals: "- -\n200")
    #expect(throws: HTTPServerError.self) { try ClientCertificateCheck(authorities: clientKey) }
  }
}
