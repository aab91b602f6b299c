import Discovery
import Replication
import Storage

/// A listener that was found in the local network. All that is known of it is what somebody there claims.
public struct DiscoveredListener: Sendable, Hashable {
  /// The name that people see.
  public let name: String
  /// The name of its machine, such as `kitchen.local`.
  public let host: String
  /// A numeric address of the machine.
  public let address: String
  /// Its port.
  public let port: Int
  /// Whether it wants TLS.
  public let usesTLS: Bool
  /// What it says of itself.
  public let attributes: [String: String]

  /// The URL of one of its databases, for a replicator. The certificate of a listener that makes its own is pinned, or its
  /// fingerprint compared: the name and the address prove nothing.
  public func url(of database: String) -> String {
    let host = address.contains(":") ? "[\(address)]" : address
    return "\(usesTLS ? "wss" : "ws")://\(host):\(port)/\(Self.segment(database))"
  }

  private static func segment(_ name: String) -> String {
    var text = ""
    for byte in name.utf8 {
      let isPlain =
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
      let digits = String(byte, radix: 16, uppercase: true)
      text += isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.count == 1 ? "0" : "") + digits
    }
    return text
  }

  init(_ service: FoundService) {
    name = service.name
    host = service.host
    address = service.address
    port = Int(service.port)
    usesTLS = service.attributes["tls"] == "1"
    attributes = service.attributes
  }
}

/// Looks for listeners in the local network, by DNS-SD (also known as Bonjour), as long as it exists. Avahi's daemon does that;
/// where it isn't, no listener is found.
///
/// ```swift
/// let browser = try ListenerBrowser()
/// for await listeners in browser.changes { show(listeners.map(\.name)) }
/// ```
///
/// All calls may come from any thread.
public final class ListenerBrowser: Sendable {
  /// The type of services that listeners of this library are announced as, if their app doesn't say another one.
  public static let defaultType = "_touchstone._tcp"

  private let browser: ServiceBrowser
  private let readers: Lock<(next: Int, all: [Int: AsyncStream<[DiscoveredListener]>.Continuation])>

  /// Looks for listeners from now on. Throws `ReplicationError` (`invalidURL`) if `type` isn't of the form `_name._tcp`.
  public init(type: String = ListenerBrowser.defaultType) throws {
    let readers = Lock((next: 0, all: [Int: AsyncStream<[DiscoveredListener]>.Continuation]()))
    self.readers = readers
    do {
      browser = try ServiceBrowser(type) { services in
        let listeners = services.map { DiscoveredListener($0) }
        for reader in readers.withLock({ Array($0.all.values) }) { reader.yield(listeners) }
      }
    } catch let error as DiscoveryError {
      throw ReplicationError(.network, ReplicationError.NetworkCode.invalidURL.rawValue, error.description)
    }
  }

  deinit { for reader in readers.withLock({ Array($0.all.values) }) { reader.finish() } }

  /// Whether this machine has Avahi's library. Its daemon may still be missing.
  public static var isAvailable: Bool { ServiceBrowser.isAvailable }

  /// The listeners that are there now, in the order of their names.
  public var listeners: [DiscoveredListener] { browser.services.map { DiscoveredListener($0) } }

  /// The listeners that are there, now and after each change. A slow reader gets the latest ones.
  public var changes: AsyncStream<[DiscoveredListener]> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let number = readers.withLock { readers in
        readers.next += 1
        readers.all[readers.next] = continuation
        return readers.next
      }
      continuation.onTermination = { [readers] _ in readers.withLock { $0.all[number] = nil } }
      continuation.yield(listeners)
    }
  }
}
