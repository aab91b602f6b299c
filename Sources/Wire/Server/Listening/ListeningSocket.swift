import CMicrohttpd
import Glibc

/// A socket that listens. It is closed with the object.
final class ListeningSocket: Sendable {
  let descriptor: Int32
  let address: PeerAddress

  private init(descriptor: Int32, address: PeerAddress) {
    self.descriptor = descriptor
    self.address = address
  }

  deinit { close(descriptor) }

  /// Opens the sockets of a configuration; all have the same port.
  static func open(_ listen: HTTPServerConfiguration.Listen, port: UInt16) throws -> [ListeningSocket] {
    switch listen {
    case .address(let text): return [try open(parse(text, port: port), text: text, port: port)]
    case .interface(let name):
      let addresses = try addresses(of: name)
      var sockets: [ListeningSocket] = []
      for address in addresses {
        let port = sockets.first?.address.port ?? port
        sockets.append(
          try open(setting(port, in: address), text: PeerAddress(address).host, port: port))
      }
      return sockets
    }
  }

  private static func parse(_ text: String, port: UInt16) throws -> sockaddr_storage {
    var storage = sockaddr_storage()
    var v4 = in_addr()
    var v6 = in6_addr()
    let isClean = !text.utf8.contains(0)
    if isClean, inet_pton(AF_INET, text, &v4) == 1 {
      let address = sockaddr_in(
        sin_family: sa_family_t(AF_INET), sin_port: port.bigEndian, sin_addr: v4,
        sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_in.self) }
    } else if isClean, inet_pton(AF_INET6, text, &v6) == 1 {
      let address = sockaddr_in6(
        sin6_family: sa_family_t(AF_INET6), sin6_port: port.bigEndian, sin6_flowinfo: 0, sin6_addr: v6,
        sin6_scope_id: 0)
      withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: sockaddr_in6.self) }
    } else {
      throw HTTPServerError(
        .invalidAddress, "can't listen on “\(text)”: it is no numeric address such as 127.0.0.1 or ::1")
    }
    return storage
  }

  private static func setting(_ port: UInt16, in address: sockaddr_storage) -> sockaddr_storage {
    // The port is at the same place for both families.
    var address = address
    withUnsafeMutableBytes(of: &address) {
      $0.storeBytes(of: port.bigEndian, toByteOffset: 2, as: UInt16.self)
    }
    return address
  }

  /// The addresses of an interface, without those that need a zone.
  private static func addresses(of name: String) throws -> [sockaddr_storage] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else {
      throw HTTPServerError(.systemFailure, "can't list the network interfaces: \(text(errno))")
    }
    defer { freeifaddrs(list) }
    var found: [sockaddr_storage] = []
    var names: Set<String> = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      let entryName = String(cString: entry.ifa_name)
      names.insert(entryName)
      guard entryName == name, let address = entry.ifa_addr else { continue }
      let family = Int32(address.pointee.sa_family)
      guard family == AF_INET || family == AF_INET6 else { continue }
      var storage = sockaddr_storage()
      let size = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
      withUnsafeMutableBytes(of: &storage) {
        $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: size))
      }
      if family == AF_INET6, PeerAddress(storage).host.hasPrefix("fe80:") { continue }
      found.append(storage)
    }
    guard !found.isEmpty else {
      throw HTTPServerError(
        .addressNotAvailable,
        "can't listen on the interface “\(name)”: "
          + (names.contains(name) ? "it has no address" : "this machine has none of that name")
          + "; it has: \(names.sorted().joined(separator: ", "))")
    }
    return found
  }

  private static func open(_ address: sockaddr_storage, text: String, port: UInt16) throws -> ListeningSocket
  {
    let family = Int32(address.ss_family)
    let descriptor = socket(
      family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw failure(errno, "open a socket", text, port) }
    var isDone = false
    defer { if !isDone { close(descriptor) } }
    var yes: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
    // `::` is all addresses, IPv4 too.
    var no: Int32 = 0
    if family == AF_INET6 {
      setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &no, socklen_t(MemoryLayout<Int32>.size))
    }
    var address = address
    var size = socklen_t(family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size)
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
    }
    guard bound == 0 else { throw failure(errno, "listen", text, port) }
    guard Glibc.listen(descriptor, 1024) == 0 else { throw failure(errno, "listen", text, port) }
    size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let named = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
    }
    guard named == 0 else { throw failure(errno, "ask for the port", text, port) }
    isDone = true
    return ListeningSocket(descriptor: descriptor, address: PeerAddress(address))
  }

  private static func failure(_ number: Int32, _ verb: String, _ address: String, _ port: UInt16)
    -> HTTPServerError
  {
    let what = "can't \(verb) on \(address.contains(":") ? "[\(address)]" : address), port \(port): "
    switch number {
    case EADDRINUSE:
      return HTTPServerError(
        .portInUse, what + "another program listens there; choose another port, or 0 for any")
    case EADDRNOTAVAIL, EAFNOSUPPORT:
      return HTTPServerError(
        .addressNotAvailable, what + "this machine doesn't have the address; choose one that it has")
    case EACCES, EPERM:
      return HTTPServerError(
        .permissionDenied, what + "this user may not; choose a port from 1024 on")
    default: return HTTPServerError(.systemFailure, what + text(number))
    }
  }

  static func text(_ number: Int32) -> String { String(cString: strerror(number)) }
}
