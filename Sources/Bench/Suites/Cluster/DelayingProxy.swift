import BenchmarkKit
import CTimers
import FoundationEssentials
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A Unix socket in front of a server that hands on every byte in each direction after a fixed time, as a long way does.
///
/// One thread serves all connections. What comes together leaves together, so the time isn't added up.
///
/// `@unchecked Sendable`: the thread alone uses the connections.
final class DelayingProxy: @unchecked Sendable {
  /// Where the server listens.
  enum Upstream: Sendable {
    case socket(String)
    case host(String, port: Int)
  }

  /// The directory of the socket, `.s.PGSQL.5432`, for the setting `host` of libpq.
  let directory: String
  private let upstream: Upstream
  private let delay: UInt64
  private let listener: Int32
  /// Both ends of a pair: closing one ends the thread.
  private let wake: (Int32, Int32)
  private let ended = CountingSemaphore()
  private var links: [Link] = []
  /// How often a client has said something after the server did.
  private let trips = Lock(0)

  /// A connection of a client and its connection to the server: what was read from each and isn't written to the other one.
  private final class Link {
    let descriptors: [Int32]
    /// What goes to each descriptor, with the times at which it is due.
    var waiting: [[(due: UInt64, bytes: [UInt8])]] = [[], []]
    /// Whether each descriptor has no more to read.
    var isEnded = [false, false]
    /// Whether the client has said the last thing.
    var isClientLast = false

    init(_ client: Int32, _ server: Int32) { descriptors = [client, server] }
    deinit { for descriptor in descriptors { close(descriptor) } }
  }

  init(to upstream: Upstream, eachWayNanoseconds: UInt64) throws {
    self.upstream = upstream
    delay = eachWayNanoseconds
    // A socket's path has at most 107 bytes.
    var template = Array("/tmp/touchstone-proxy-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw StorageError.system(errno, "can't make a directory", "/tmp")
    }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    var pair: [Int32] = [0, 0]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
      throw StorageError.system(errno, "can't make a socket", directory)
    }
    wake = (pair[0], pair[1])
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    let path = directory + "/.s.PGSQL.5432"
    guard listener >= 0, Self.withAddress(path, { bind(listener, $0, $1) }) == 0, listen(listener, 512) == 0
    else { throw StorageError.system(errno, "can't listen", path) }
    Workers(maximum: 1).enqueue { [self] in
      ArrivalSchedule.waitExactly()
      serve()
      links = []
      ended.signal()
    }
  }

  /// The round trips of all connections so far.
  var roundTrips: Int { trips.withLock { $0 } }

  /// Ends all connections. Call it once.
  func end() {
    close(wake.0)
    ended.wait()
    close(wake.1)
    close(listener)
    try? FileManager.default.removeItem(atPath: directory)
  }

  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  /// Connects to the server; -1 if it can't be reached.
  private func connectUpstream() -> Int32 {
    switch upstream {
    case .socket(let path):
      let server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      if server >= 0, Self.withAddress(path, { connect(server, $0, $1) }) == 0 { return server }
      close(server)
      return -1
    case .host(let host, let port):
      var hints = addrinfo()
      hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
      var found: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, "\(port)", &hints, &found) == 0 else { return -1 }
      defer { freeaddrinfo(found) }
      var next = found
      while let info = next?.pointee {
        let server = socket(info.ai_family, info.ai_socktype, info.ai_protocol)
        if server >= 0, connect(server, info.ai_addr, info.ai_addrlen) == 0 {
          var yes: Int32 = 1
          setsockopt(server, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
          return server
        }
        close(server)
        next = info.ai_next
      }
      return -1
    }
  }

  // MARK: The thread

  private func serve() {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var entries = [
        pollfd(fd: wake.1, events: Int16(POLLIN), revents: 0),
        pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
      ]
      var next: UInt64?
      let now = Clock.nanoseconds()
      for link in links {
        for side in 0..<2 {
          var events = link.isEnded[side] ? 0 : POLLIN
          if let due = link.waiting[side].first?.due {
            if due <= now { events |= POLLOUT } else { next = min(next ?? due, due) }
          }
          // The system ignores -1. An ended connection would wake this thread all the time.
          entries.append(
            pollfd(fd: events == 0 ? -1 : link.descriptors[side], events: Int16(events), revents: 0))
        }
      }
      var timeout = timespec()
      if let next {
        timeout = timespec(
          tv_sec: Int((next - now) / 1_000_000_000), tv_nsec: Int((next - now) % 1_000_000_000))
      }
      let count =
        next == nil
        ? ppoll(&entries, nfds_t(entries.count), nil, nil)
        : ppoll(&entries, nfds_t(entries.count), &timeout, nil)
      guard count >= 0 || errno == EINTR else { return }
      if count <= 0 { continue }
      guard entries[0].revents == 0 else { return }
      var lost: Set<Int> = []
      for index in links.indices {
        for side in 0..<2 where entries[2 + 2 * index + side].revents != 0 {
          if !move(links[index], side, entries[2 + 2 * index + side].revents, &buffer) { lost.insert(index) }
        }
      }
      if !lost.isEmpty { links = links.indices.filter { !lost.contains($0) }.map { links[$0] } }
      if entries[1].revents != 0 { acceptClient() }
    }
  }

  private func acceptClient() {
    let client = accept(listener, nil, nil)
    guard client >= 0 else { return }
    let server = connectUpstream()
    guard server >= 0 else {
      close(client)
      return
    }
    for descriptor in [client, server] { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
    links.append(Link(client, server))
  }

  /// Reads from one side of a link, and writes what is due to it. Returns false if the link is done.
  private func move(_ link: Link, _ side: Int, _ events: Int16, _ buffer: inout [UInt8]) -> Bool {
    let descriptor = link.descriptors[side]
    if events & Int16(POLLOUT) != 0 {
      let now = Clock.nanoseconds()
      while let first = link.waiting[side].first, first.due <= now {
        let count = send(descriptor, first.bytes, first.bytes.count, Int32(MSG_NOSIGNAL))
        if count < 0 {
          guard errno == EAGAIN || errno == EINTR else { return false }
          break
        }
        guard count == first.bytes.count else {
          link.waiting[side][0].bytes.removeFirst(count)
          break
        }
        link.waiting[side].removeFirst()
      }
    }
    if !link.isEnded[side], events & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count > 0 {
        if side == 0, !link.isClientLast { trips.withLock { $0 += 1 } }
        link.isClientLast = side == 0
        link.waiting[1 - side].append((Clock.nanoseconds() + delay, Array(buffer[..<count])))
      } else if count == 0 || errno != EAGAIN && errno != EINTR {
        link.isEnded[side] = true
      }
    }
    // What was said before an end is still handed on.
    return !(link.isEnded[0] && link.waiting[1].isEmpty) && !(link.isEnded[1] && link.waiting[0].isEmpty)
  }
}
