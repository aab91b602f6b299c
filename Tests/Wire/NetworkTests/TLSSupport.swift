import Foundation
import Testing

/// The Python with the modules that some tests use; nil if there is none.
let python: String? = program(EnvironmentPython.name)

private enum EnvironmentPython {
  static var name: String {
    let value = ProcessInfo.processInfo.environment["TOUCHSTONE_PYTHON"] ?? ""
    return value.isEmpty ? "python3" : value
  }
}

let canUseTLS = python.map { succeeds([$0, "-c", "import ssl"]) } == true && program("openssl") != nil
let canUseWebsockets = python.map { succeeds([$0, "-c", "import websockets.sync.server"]) } == true

/// Certificates that the openssl command makes: an authority, and what it has signed; and some that stand alone.
final class Certificates: Sendable {
  let directory: TemporaryDirectory

  static let shared = Result { try Certificates() }

  private init() throws {
    directory = try TemporaryDirectory()
    try openssl(
      "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Authority -keyout ca.key -out ca.pem -addext keyUsage=keyCertSign"
    )
    try sign("localhost", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    try sign("other", "subjectAltName=DNS:other.example")
    try sign("jane", "extendedKeyUsage=clientAuth")
    for name in ["self", "self2"] {
      try openssl(
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=anonymous -keyout \(name).key -out \(name).pem")
    }
    try openssl("x509 -in self.pem -outform DER -out self.der")
    try openssl("pkcs12 -export -in jane.pem -inkey jane.key -out jane.p12 -passout pass:p12-word")
    try openssl("rsa -in jane.key -aes128 -passout pass:key-word -out jane.encrypted.key")
    // One whose time is over: it is signed for a day that has passed.
    try openssl("req -new -key localhost.key -subj /CN=expired -out expired.csr")
    try openssl(
      "x509 -req -in expired.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days -1 -extfile localhost.ext -out expired.pem"
    )
    try FileManager.default.copyItem(atPath: path("localhost.key"), toPath: path("expired.key"))
  }

  private func sign(_ name: String, _ extensions: String) throws {
    try openssl("req -newkey rsa:2048 -nodes -subj /CN=\(name) -keyout \(name).key -out \(name).csr")
    try extensions.write(toFile: path("\(name).ext"), atomically: true, encoding: .utf8)
    try openssl(
      "x509 -req -in \(name).csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile \(name).ext -out \(name).pem"
    )
  }

  private func openssl(_ arguments: String) throws {
    let openssl = try #require(program("openssl"))
    let words = arguments.components(separatedBy: " ").map { word in
      // What names a file.
      word.hasSuffix(".key") || word.hasSuffix(".pem") || word.hasSuffix(".csr") || word.hasSuffix(".ext")
        || word.hasSuffix(".der") || word.hasSuffix(".p12") ? path(word) : word
    }
    try #require(succeeds([openssl] + words), "openssl \(arguments)")
  }

  func path(_ name: String) -> String { "\(directory.path)/\(name)" }

  func bytes(_ name: String) -> [UInt8] {
    FileManager.default.contents(atPath: path(name)).map { [UInt8]($0) } ?? []
  }

  func text(_ name: String) -> String { String(decoding: bytes(name), as: UTF8.self) }
}

/// TLS in front of a `RawServer`: a child process in Python.
final class TLSFront: Sendable {
  private let child: Child
  private let backend: RawServer
  let port: Int

  private static let script = """
    import os, socket, ssl, sys, threading
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    certificate, key, backend, clients = sys.argv[1:5]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    def serve(plain):
        try:
            secure = context.wrap_socket(plain, server_side=True)
        except (OSError, ssl.SSLError):
            return
        inner = socket.create_connection(("127.0.0.1", int(backend)))
        # Reading and writing in two threads is fine with Python's ssl, which has a lock of its own.
        threading.Thread(target=copy, args=(inner, secure), daemon=True).start()
        copy(secure, inner)
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=serve, args=(plain,), daemon=True).start()
    """

  /// `clients` is the file of the authorities of clients; without, none is asked for.
  init(_ certificates: Certificates, _ name: String, _ backend: RawServer, clients: String = "") async throws
  {
    self.backend = backend
    child = try Child([
      try #require(python), "-c", Self.script, certificates.path("\(name).pem"),
      certificates.path("\(name).key"),
      "\(backend.port)", clients,
    ])
    port = try #require(Int(try await child.line()))
  }
}
