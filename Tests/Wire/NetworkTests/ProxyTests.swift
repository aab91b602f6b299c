import Foundation
import Storage
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// A proxy that connects to what a client asks for, with CONNECT of HTTP or with SOCKS 5. Only to loopback.
private func proxy(refusing status: Int? = nil) throws -> RawServer {
  try RawServer { connection, _ in
    var first: UInt8 = 0
    guard recv(connection.descriptor, &first, 1, CInt(MSG_PEEK)) == 1 else { return }
    let port: Int
    if first == 5 {
      guard let asked = socks(connection) else { return }
      port = asked
    } else {
      let line = connection.readHead().components(separatedBy: " ")
      guard line.count > 1, line[0] == "CONNECT",
        let asked = Int(line[1].components(separatedBy: ":").last ?? "")
      else { return }
      if let status { return connection.write("HTTP/1.1 \(status) no\r\nContent-Length: 0\r\n\r\n") }
      port = asked
    }
    let target = dial(port)
    guard target >= 0 else { return }
    if first != 5 { connection.write("HTTP/1.1 200 yes\r\nX-Proxy: a\r\n\r\n") }
    let back = RawConnection(target, Lock([]))
    let workers = Workers()
    workers.enqueue {
      copy(from: target, to: connection)
      shutdown(connection.descriptor, CInt(SHUT_WR))
    }
    copy(from: connection.descriptor, to: back)
    back.close()
  }
}

private func copy(from source: CInt, to target: RawConnection) {
  var chunk = [UInt8](repeating: 0, count: 65536)
  while true {
    let count = read(source, &chunk, chunk.count)
    if count <= 0 { return }
    target.write(Array(chunk[..<count]))
  }
}

private func socks(_ connection: RawConnection) -> Int? {
  func read(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    return recv(connection.descriptor, &bytes, count, CInt(MSG_WAITALL)) == count ? bytes : []
  }
  let hello = read(2)
  guard hello.count == 2, read(Int(hello[1])).count == Int(hello[1]) else { return nil }
  connection.write([5, 0])
  let request = read(4)
  guard request.count == 4, request[3] == 1, read(4) == [127, 0, 0, 1] else { return nil }
  let port = read(2)
  guard port.count == 2 else { return nil }
  connection.write([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  return Int(port[0]) << 8 | Int(port[1])
}

@Suite struct ProxyTests {
  private func server() throws -> RawServer {
    try RawServer { connection, _ in
      connection.upgrade()
      connection.echo()
    }
  }

  @Test func aConnectionGoesThroughAnHTTPProxy() async throws {
    let (server, proxy) = (try server(), try proxy())
    var request = request(server.url())
    request.proxy = .url("http://127.0.0.1:\(proxy.port)", name: "jane", password: "secret")
    request.authentication = .cookie(name: "a", value: "b")
    let connection = try await connect(request).get()
    await exchange(connection.transport)
    connection.transport.close(.normal)
    expect(proxy.requests.withLock { $0[0].hasPrefix("CONNECT 127.0.0.1:\(server.port) HTTP/1.1\r\n") })
    expect(proxy.headers(0)["proxy-authorization"], equals: "Basic amFuZTpzZWNyZXQ=")
    // What is for the server isn't shown to the proxy, and the other way round.
    expect(proxy.headers(0)["cookie"] == nil)
    expect(server.headers(0)["proxy-authorization"] == nil)
    expect(server.headers(0)["cookie"], equals: "a=b")
  }

  @Test func aConnectionGoesThroughASOCKSProxy() async throws {
    let (server, proxy) = (try server(), try proxy())
    var request = request(server.url())
    request.proxy = .url("socks5://127.0.0.1:\(proxy.port)")
    let connection = try await connect(request).get()
    await exchange(connection.transport)
    connection.transport.close(.normal)
  }

  @Test func aProxyThatRefusesSaysWhy() async throws {
    for status in [403, 407, 502] {
      let (server, proxy) = (try server(), try proxy(refusing: status))
      var request = request(server.url())
      request.proxy = .url("http://127.0.0.1:\(proxy.port)")
      #expect(await connect(request).failure?.kind == "http \(status)\(status == 502 ? " transient" : "")")
      expect(server.requests.withLock { $0 }, equals: [])
    }
  }

  @Test func aProxyThatIsntThereIsAnErrorOfTheSystem() async throws {
    let (listener, port) = try listen()
    close(listener)
    var request = request(try server().url())
    request.proxy = .url("http://127.0.0.1:\(port)")
    #expect(await connect(request).failure?.kind == "posix \(ECONNREFUSED) transient")
  }

  @Test(.enabled(if: canUseTLS, "there is no python3 with ssl, or no openssl"))
  func tlsGoesThroughAProxyToo() async throws {
    let proxy = try proxy()
    let certificates = try Certificates.shared.get()
    let front = try await TLSFront(certificates, "localhost", try server())
    var request = request("wss://127.0.0.1:\(front.port)/")
    request.proxy = .url("http://127.0.0.1:\(proxy.port)")
    request.trust = .pinned(certificates.bytes("ca.pem"))
    let connection = try await connect(request).get()
    await exchange(connection.transport)
    connection.transport.close(.normal)
    expect(proxy.requests.withLock { $0.count }, equals: 1)
  }
}
