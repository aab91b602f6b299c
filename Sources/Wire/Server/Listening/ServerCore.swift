import Bytes
import CMicrohttpd
import HTTP
import Synchronization
import System

/// What the parts of a running server share.
final class ServerCore: Sendable {
  let configuration: HTTPServerConfiguration
  let limits: HTTPServerLimits
  let handler: any HTTPHandler
  let hostCheck: HostCheck
  let threads: HandlerThreads
  let table = ConnectionTable()
  let upgraded = UpgradedConnections()
  let lingering: LingeringSockets
  private let stopping = Atomic<Bool>(false)
  /// The address of the connection that the latest request came on, which isn't followed.
  private let latest = Atomic<UInt>(0)
  /// Whether the latest two requests came on one connection.
  let hasOneClient = Atomic<Bool>(false)

  init(_ configuration: HTTPServerConfiguration, _ handler: any HTTPHandler, _ addresses: [PeerAddress]) {
    self.configuration = configuration
    limits = configuration.limits
    lingering = LingeringSockets(configuration.limits)
    self.handler = handler
    hostCheck = HostCheck(configuration, addresses)
    threads = HandlerThreads(
      maximum: configuration.handlerThreads, spare: configuration.blockedHandlerThreads)
  }

  var authenticator: any Authenticator { configuration.authenticator }
  var isStopping: Bool { stopping.load(ordering: .acquiring) }
  func beginStopping() { stopping.store(true, ordering: .releasing) }

  /// Called with each request.
  func noticeRequest(of connection: ServerConnection) {
    let address = UInt(bitPattern: Unmanaged.passUnretained(connection).toOpaque())
    let before = latest.exchange(address, ordering: .relaxed)
    hasOneClient.store(before == address, ordering: .relaxed)
  }

  func errorAnswer(_ status: Int, _ reason: String) -> HTTPAnswer {
    configuration.errorAnswer(status, reason)
  }
}

/// Which hosts a client may ask for.
struct HostCheck: Sendable {
  /// Lower-case. Nil allows all.
  private let names: [[UInt8]]?

  init(_ configuration: HTTPServerConfiguration, _ addresses: [PeerAddress]) {
    guard configuration.checksHost ?? addresses.allSatisfy(\.isLoopback) else {
      names = nil
      return
    }
    var names: Set<String> = ["localhost", "127.0.0.1", "::1"]
    names.formUnion(addresses.map(\.host))
    names.formUnion(configuration.hostNames.map { $0.lowercased() })
    self.names = names.map { Array($0.utf8) }
  }

  /// Whether a host may be asked for. HTTP/1.0 needs none; a browser always says it.
  func allows(_ authority: HTTPAuthority?) -> Bool {
    guard let names, let authority else { return true }
    var host = authority.host
    if host.last == UInt8(ascii: ".") { host = host.dropLast() }
    return names.contains { name in
      name.count == host.count && zip(name, host).allSatisfy { $0 == $1.lowercasedASCII }
    }
  }
}
