import CSockets
import System
import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// What has happened to a descriptor.
package struct SocketEvents: OptionSet, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Something can be read.
  package static let readable = SocketEvents(rawValue: EPOLLIN.rawValue)
  /// Something can be written.
  package static let writable = SocketEvents(rawValue: EPOLLOUT.rawValue)
  /// The other side sends no more.
  package static let ended = SocketEvents(rawValue: EPOLLRDHUP.rawValue)
  /// Both directions have ended.
  package static let hungUp = SocketEvents(rawValue: EPOLLHUP.rawValue)
  /// The connection is broken.
  package static let failed = SocketEvents(rawValue: EPOLLERR.rawValue)
}

/// A thread that waits for sockets and for times, and calls what is registered for them. It serves thousands.
///
/// The process has a few that all connections share: `SocketLoop.shared()`. They never end. Calls are made on the loop's
/// thread, one after another, so none may wait.
package final class SocketLoop: @unchecked Sendable {
  /// What is registered for a descriptor.
  package struct Registration: Sendable, Hashable {
    fileprivate let number: UInt64
    fileprivate let descriptor: CInt
  }

  private struct State {
    var handlers: [UInt64: @Sendable (SocketEvents) -> Void] = [:]
    var nextNumber: UInt64 = 0
    var timers = Timers()
    /// Calls to make at once.
    var posted: [@Sendable () -> Void] = []
    /// Until when the thread waits; nil while it runs, or waits without end.
    var wakeTime: MonotonicTime?
    var isWaiting = false
  }

  private static let eventsAtOnce = 256

  private let poll: CInt
  private let wake: CInt
  private let state = Lock(State())
  private let thread = ThreadChecker("what a loop of sockets calls")

  /// Makes a loop, and starts its thread. Throws an error of the operating system.
  private init() throws(TransportClose) {
    poll = epoll_create1(CInt(EPOLL_CLOEXEC))
    guard poll >= 0 else { throw .posix(errno, "making an epoll") }
    wake = eventfd(0, CInt(EFD_NONBLOCK | EFD_CLOEXEC))
    guard wake >= 0 else {
      let code = errno
      Glibc.close(poll)
      throw .posix(code, "making an eventfd")
    }
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data(u64: 0))
    epoll_ctl(poll, EPOLL_CTL_ADD, wake, &event)
    let code = start()
    guard code == 0 else {
      Glibc.close(poll)
      Glibc.close(wake)
      throw .posix(code, "starting a thread")
    }
  }

  // MARK: The loops of the process

  private static let loops = Lock((loops: [SocketLoop](), next: 0))
  /// More don't help: what takes long is done elsewhere.
  private static let maximum = max(1, min(4, sysconf(CInt(_SC_NPROCESSORS_ONLN))))

  /// A loop of the process; each call returns the next one. Throws an error of the operating system if there is none yet.
  package static func shared() throws(TransportClose) -> SocketLoop {
    try loops.withLock { state throws(TransportClose) in
      if state.loops.count < maximum { state.loops.append(try SocketLoop()) }
      state.next = (state.next + 1) % state.loops.count
      return state.loops[state.next]
    }
  }

  // MARK: Registering

  /// Calls `handler` whenever the descriptor has become readable, writable or broken, at least once more after each time
  /// that reading or writing would have blocked. Throws an error of the operating system.
  package func add(
    _ descriptor: CInt, _ handler: @escaping @Sendable (SocketEvents) -> Void
  ) throws(TransportClose) -> Registration {
    let number = state.withLock { state in
      state.nextNumber += 1
      state.handlers[state.nextNumber] = handler
      return state.nextNumber
    }
    let events = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue
    var event = epoll_event(events: events, data: epoll_data(u64: number))
    guard epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0 else {
      let code = errno
      state.withLock { _ = $0.handlers.removeValue(forKey: number) }
      throw .posix(code, "waiting for a socket")
    }
    return Registration(number: number, descriptor: descriptor)
  }

  /// Ends a registration. A call that has begun goes on. The descriptor has to be open still.
  package func remove(_ registration: Registration) {
    state.withLock { _ = $0.handlers.removeValue(forKey: registration.number) }
    var event = epoll_event()
    epoll_ctl(poll, EPOLL_CTL_DEL, registration.descriptor, &event)
  }

  /// Calls `body` once at a time. Returns the number to cancel it by.
  @discardableResult
  package func call(at time: MonotonicTime, _ body: @escaping @Sendable () -> Void) -> UInt64 {
    let (number, isEarlier) = state.withLock { state in
      let number = state.timers.add(time, body)
      let isEarlier = state.isWaiting && state.wakeTime.map { time < $0 } ?? true
      return (number, isEarlier)
    }
    if isEarlier { wakeUp() }
    return number
  }

  /// Cancels a call at a time. It may have begun.
  package func cancel(_ number: UInt64) { state.withLock { $0.timers.cancel(number) } }

  /// Calls `body` soon.
  package func post(_ body: @escaping @Sendable () -> Void) {
    let isWaiting = state.withLock { state in
      state.posted.append(body)
      return state.isWaiting
    }
    if isWaiting { wakeUp() }
  }

  private func wakeUp() {
    var one: UInt64 = 1
    // It fails only if the thread will wake up anyway.
    _ = write(wake, &one, 8)
  }

  // MARK: The thread

  /// Ends the process unless the calling thread is the loop's: see `ThreadChecker`.
  package func assertCurrent() { thread.assertCurrent() }

  private func start() -> CInt {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    let argument = Unmanaged.passRetained(self)
    var thread = pthread_t()
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        guard let argument else { return nil }
        Unmanaged<SocketLoop>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      }, argument.toOpaque())
    if code != 0 { argument.release() }
    return code
  }

  private func run() {
    thread.enter()
    let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: Self.eventsAtOnce)
    while true {
      let count = epoll_wait(poll, events, CInt(Self.eventsAtOnce), beforeWaiting())
      state.withLock { state in state.isWaiting = false }
      for index in 0..<max(0, Int(count)) {
        let number = events[index].data.u64
        if number == 0 {
          var value: UInt64 = 0
          _ = read(wake, &value, 8)
        } else if let handler = state.withLock({ $0.handlers[number] }) {
          handler(SocketEvents(rawValue: events[index].events))
        }
      }
      let due = state.withLock { state in
        defer { state.posted = [] }
        return state.posted + state.timers.takeDue(.now)
      }
      for body in due { body() }
    }
  }

  /// The milliseconds to wait; -1 for without end.
  private func beforeWaiting() -> CInt {
    state.withLock { state in
      guard state.posted.isEmpty else { return 0 }
      state.isWaiting = true
      state.wakeTime = state.timers.nextTime
      guard let time = state.wakeTime else { return -1 }
      return CInt(min(3_600_000, (time.seconds(since: .now) * 1000).rounded(.up)))
    }
  }
}
