import Foundation
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// Against the package `websockets` of Python, as server and as client. TOUCHSTONE_PYTHON names a Python that has it.
@Suite(
  .enabled(if: canUseWebsockets, "there is no Python with the package websockets"))
struct PythonTests {
  private static let server = """
    import os, sys, threading
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    from websockets.sync.server import serve
    def echo(socket):
        for message in socket:
            if message == b"close":
                socket.close(4001, "as you like")
                return
            if message == b"text":
                socket.send("a text that is ignored")
            elif message == b"fragments":
                socket.send([b"frag", b"", b"ments"])
            elif message == b"ping":
                socket.ping(b"abc").wait()
                socket.send(b"pong")
            else:
                socket.send(message)
    with serve(echo, "127.0.0.1", 0, subprotocols=["p"], compression=None, max_size=None) as server:
        print(server.socket.getsockname()[1], flush=True)
        server.serve_forever()
    """

  private static let client = """
    import os, sys, threading
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    from websockets.sync.client import connect
    from websockets.exceptions import ConnectionClosed
    messages = [bytes([n % 256]) * (n * 37 % 16000) for n in range(300)]
    with connect(f"ws://127.0.0.1:{sys.argv[1]}/", subprotocols=["p"], compression=None, max_size=None) as socket:
        for message in messages:
            socket.send(message)
        assert [socket.recv() for message in messages] == messages
        socket.send([b"frag", b"ments"])
        assert socket.recv() == b"fragments"
        socket.ping(b"abc").wait()
        socket.send(b"x" * 70000)
        try:
            socket.recv()
        except ConnectionClosed as error:
            print(error.rcvd.code, flush=True)
    """

  @Test func theServerInPythonIsUnderstood() async throws {
    let child = try Child([try #require(python), "-c", Self.server])
    let port = try #require(Int(try await child.line()))
    let connection = try await connect(request("ws://127.0.0.1:\(port)/", ["q", "p"])).get()
    expect(connection.chosenProtocol, equals: "p")
    await exchange(connection.transport)
    for (sent, expected) in [("fragments", "fragments"), ("ping", "pong")] {
      await connection.transport.send([[UInt8](sent.utf8)])
      #expect(await connection.transport.messages(1) == [[UInt8](expected.utf8)])
    }
    await connection.transport.send([[UInt8]("text".utf8), [UInt8]("after".utf8)])
    #expect(await connection.transport.messages(1) == [[UInt8]("after".utf8)])
    await connection.transport.send([[UInt8]("close".utf8)])
    #expect(await connection.transport.waitForEnd() == .webSocket(4001, "as you like"))
    #expect(await connect(request("ws://127.0.0.1:\(port)/", ["q"])).failure?.domain == .http)
  }

  @Test func theClientInPythonIsUnderstood() async throws {
    let server = try RawServer { connection, _ in
      connection.upgrade()
      connection.echo()
    }
    let child = try Child([try #require(python), "-c", Self.client, "\(server.port)"])
    // Its last message is longer than the limit.
    #expect(try await child.line() == "1009")
  }
}
