import Bytes
import CMicrohttpd
import Glibc

/// An address as the system gives it.
struct SocketAddress: Sendable {
  let storage: sockaddr_storage
  let size: socklen_t
}

/// The address of a client.
package struct PeerAddress: Sendable, Hashable, CustomStringConvertible {
  /// The numeric address, without a port: `127.0.0.1`, `2001:db8::1`. IPv4 in IPv6 is IPv4.
  package let host: String
  /// The port.
  package let port: UInt16
  /// What limits are counted by: the address, or the upper 64 bits of an IPv6 address.
  package let network: ByteString

  init(_ storage: sockaddr_storage) {
    var storage = storage
    switch Int32(storage.ss_family) {
    case AF_INET:
      let address = withUnsafeBytes(of: &storage) { $0.loadUnaligned(as: sockaddr_in.self) }
      self.init(
        v4: withUnsafeBytes(of: address.sin_addr) { Array($0) }, port: UInt16(bigEndian: address.sin_port))
    case AF_INET6:
      let address = withUnsafeBytes(of: &storage) { $0.loadUnaligned(as: sockaddr_in6.self) }
      let bytes = withUnsafeBytes(of: address.sin6_addr) { Array($0) }
      let port = UInt16(bigEndian: address.sin6_port)
      if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF {
        self.init(v4: Array(bytes[12...]), port: port)
        return
      }
      self.init(v6: address.sin6_addr, bytes, port: port)
    default:
      self.init(host: "unknown", port: 0, network: ByteString([]))
    }
  }

  private init(host: String, port: UInt16, network: ByteString) {
    self.host = host
    self.port = port
    self.network = network
  }

  private init(v4 bytes: [UInt8], port: UInt16) {
    self.init(host: bytes.map(String.init).joined(separator: "."), port: port, network: ByteString(bytes))
  }

  private init(v6 address: in6_addr, _ bytes: [UInt8], port: UInt16) {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    var address = address
    inet_ntop(AF_INET6, &address, &text, socklen_t(text.count))
    let host = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.init(host: host, port: port, network: ByteString(bytes[..<8]))
  }

  /// Whether it is on this machine.
  package var isLoopback: Bool { host.hasPrefix("127.") || host == "::1" }

  /// The address and the port.
  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
