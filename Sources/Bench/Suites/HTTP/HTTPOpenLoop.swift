import BenchmarkKit
import CTimers
import Glibc

/// The connections of a thread that sends requests at their times.
///
/// A request whose time has come takes a free connection, or waits for one. Its latency counts from its time, so that waiting is part of
/// it. The thread sleeps while nothing is due and nothing is answered.
struct HTTPOpenLoop {
  private let clients: [HTTPLoadClient]
  private let status: Int
  private var free: [Int]
  /// When the request of each connection was due.
  private var due: [UInt64]
  /// One for each connection; its descriptor is -1, which the system ignores, while nothing is asked there.
  private var polled: [pollfd]
  private(set) var histogram = LatencyHistogram()

  /// Opens connections. `status` is that of every answer.
  init(port: Int, connections: Int, status: Int) throws {
    clients = try (0..<connections).map { _ in try HTTPLoadClient(port: port) }
    self.status = status
    free = Array(clients.indices.reversed())
    due = [UInt64](repeating: 0, count: connections)
    polled = [pollfd](repeating: pollfd(fd: -1, events: Int16(POLLIN), revents: 0), count: connections)
    ArrivalSchedule.waitExactly()
  }

  /// Sends all requests, each not before its time, which doesn't decrease, and reads their answers.
  mutating func run(_ requests: [[UInt8]], time: (_ index: Int) -> UInt64) throws {
    var next = 0
    while next < requests.count || free.count < clients.count {
      while next < requests.count, !free.isEmpty, time(next) <= Clock.nanoseconds() {
        let place = free.removeLast()
        due[place] = time(next)
        try clients[place].send(requests[next])
        polled[place].fd = clients[place].descriptor
        next += 1
      }
      try wait(until: next < requests.count && !free.isEmpty ? time(next) : nil)
      for place in polled.indices where polled[place].revents != 0 {
        _ = try clients[place].receive(expecting: status)
        histogram.record(Clock.nanoseconds() - due[place])
        polled[place].fd = -1
        polled[place].revents = 0
        free.append(place)
      }
    }
  }

  /// Waits for an answer, or until a time.
  private mutating func wait(until time: UInt64?) throws {
    let count: Int32
    if let time {
      let now = Clock.nanoseconds()
      let left = time > now ? time - now : 0
      var timeout = timespec(tv_sec: Int(left / 1_000_000_000), tv_nsec: Int(left % 1_000_000_000))
      count = ppoll(&polled, nfds_t(polled.count), &timeout, nil)
    } else {
      count = ppoll(&polled, nfds_t(polled.count), nil, nil)
    }
    guard count >= 0 || errno == EINTR else {
      throw HTTPLoadClient.Failure(description: "can't wait: \(String(cString: strerror(errno)))")
    }
  }
}
