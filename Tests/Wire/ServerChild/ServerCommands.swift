// Commands of the child process that the tests of the listener start. Each listens on any port, prints it, and goes on until it is killed.
//
//   server tls DIRECTORY   serves TLS with an identity that it makes in the directory. It answers "ok", or keeps a WebSocket open
//   server exit            exits, and prints "there" if OpenSSL still works after all other handlers of the exit
//   server bodies          answers a PUT with the count of the bytes that came and the longest part of them, and a GET of
//                          /LENGTH?chunked&blocking with so many bytes: in chunks or not, written by a thread that waits or not

import ChildSupport
import HTTP
import Server
import Storage
import TestTools
import WebSocket

enum ServerCommands: ChildCommands {
  static let name = "server"
  static let usage = "tls DIRECTORY | exit | bodies"

  static func run(_ arguments: [String]) throws {
    var configuration = HTTPServerConfiguration()
    var handler: @Sendable (HTTPRequest, HTTPResponder) -> Void = { sendBodies($0, $1) }
    switch (arguments.first, arguments.count) {
    case ("tls", 2):
      _ = HTTPServer.allowOpenFiles(8_192)
      configuration.tls = try TLSIdentity.selfMade(in: arguments[1])
      handler = { request, responder in
        responder.answer(
          request.isWebSocketUpgrade
            ? .webSocket(request) { keep($0) } : HTTPAnswer(status: 200, text: "ok"))
      }
    case ("exit", 1):
      // Handlers run in the opposite order, so this one after any that the first use of OpenSSL registers.
      atexit { if (try? KeyDigest()) != nil { say("there") } }
      _ = try KeyDigest()
      exit(0)
    case ("bodies", 1): break
    default: throw WrongUsage()
    }
    let server = HTTPServer(configuration, handler)
    try server.start()
    say("\(server.port ?? 0)")
    while true { pause() }
  }

  /// Takes what comes until the end.
  @Sendable private static func keep(_ transport: WebSocketTransport) {
    transport.receive { result in
      switch result {
      case .success: keep(transport)
      case .failure: transport.close(.normal)
      }
    }
  }

  @Sendable private static func sendBodies(_ request: HTTPRequest, _ responder: HTTPResponder) {
    guard request.method == "PUT" else { return stream(request, responder) }
    var (count, longest) = (0, 0)
    do throws(HTTPBodyError) {
      while let part = try request.body.read() {
        count += part.count
        longest = max(longest, part.count)
      }
    } catch { return responder.answer(HTTPAnswer(status: 400, text: "\(error)")) }
    responder.answer(HTTPAnswer(status: 200, text: "\(count) \(longest)"))
  }

  private static func stream(_ request: HTTPRequest, _ responder: HTTPResponder) {
    let target = String(decoding: request.target.raw, as: UTF8.self)
    let length = Int(target.dropFirst().prefix { $0.isNumber }) ?? 0
    let isBlocking = target.contains("blocking")
    responder.answer(
      HTTPAnswer(
        status: 200,
        body: .stream(length: target.contains("chunked") ? nil : length) { writer in
          let part = [UInt8](repeating: 0x62, count: 100 << 10)
          @Sendable func next(_ left: Int) {
            if left == 0 { return writer.finish() }
            writer.offer(Array(part.prefix(left))) { error in
              if error == nil { next(left - min(left, part.count)) }
            }
          }
          guard isBlocking else { return next(length) }
          var left = length
          do throws(HTTPBodyError) {
            while left > 0 {
              try writer.write(Array(part.prefix(left)))
              left -= min(left, part.count)
            }
            writer.finish()
          } catch {}
        }))
  }
}
