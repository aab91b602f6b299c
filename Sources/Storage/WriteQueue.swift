import Dispatch
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// An engine's write transaction as `WriteQueue` drives it.
///
/// All calls come one at a time. `begin`, `commit` and `abort` of one transaction come on one thread; members
/// begin and end between them on their own threads.
public protocol WriteGroup: AnyObject {
  /// Begins the engine's write transaction and returns it. Waits for other processes.
  func begin() throws -> any WriteTransaction
  /// Commits it. When this throws nothing of it remains.
  func commit() throws
  func abort()

  /// Begins a part that can be undone alone (a savepoint, a child transaction) inside the open transaction.
  func beginMember() throws -> any WriteTransaction
  /// Keeps the part that `beginMember` began.
  func keepMember() throws
  func abortMember()
}

/// Lets one writer at a time into an engine, and lets those that wait share its commit.
///
/// The first writer leads: it begins the transaction and runs its body. Then each writer that waits by now is
/// handed the open transaction in turn, runs its body on its own thread in a part that can be undone alone,
/// and hands on; at last the leader commits for all, and all return. Nobody waits for company: a writer
/// alone begins, runs and commits. When a commit costs a sync of the disk, the next group gathers meanwhile.
public final class WriteQueue: Sendable {
  /// How many may share one commit: bounds how long the first of them waits.
  private let maximumMembers: Int
  private let state = Mutex(State())
  /// The thread that runs a body now (0: none), to tell a nested call from one that has to wait.
  private let bodyThread = Atomic<UInt>(0)

  private struct State {
    var isBusy = false
    var waiting: [Waiter] = []
  }

  /// A writer that waits, and what it is told when it is woken.
  private final class Waiter: @unchecked Sendable {
    enum Order {
      case lead
      case join(Group)
      case finished((any Error)?)
    }
    /// Needs the queue to itself and can't join a group.
    let isExclusive: Bool
    private let semaphore = DispatchSemaphore(value: 0)
    private var order: Order?

    init(isExclusive: Bool = false) { self.isExclusive = isExclusive }

    func wake(_ order: Order) {
      self.order = order
      semaphore.signal()
    }
    func wait() -> Order {
      semaphore.wait()
      guard let order else { preconditionFailure("a writer was woken without an order") }
      self.order = nil
      return order
    }
  }

  /// The open transaction on its way from writer to writer.
  private final class Group: @unchecked Sendable {
    let driver: any WriteGroup
    /// Those whose part was kept and who wait for the commit.
    var members: [Waiter] = []
    var joined = 0
    let returned = DispatchSemaphore(value: 0)
    init(driver: any WriteGroup) { self.driver = driver }
  }

  public init(maximumMembers: Int = 64) { self.maximumMembers = maximumMembers }

  /// Runs `body` in a transaction of `driver`. Returns when it is committed; throws what `body` threw, or
  /// why the commit failed, and then nothing of `body` remains.
  public func run(_ driver: any WriteGroup, _ body: (any WriteTransaction) throws -> Void) throws {
    let thread = UInt(pthread_self())
    guard let waiter = try enter(thread, isExclusive: false) else { return try lead(driver, thread, body) }
    switch waiter.wait() {
    case .lead: try lead(driver, thread, body)
    case .join(let group): try join(group, as: waiter, thread, body)
    case .finished(let error): if let error { throw error }
    }
  }

  /// Waits until no writer is in, and keeps writers out while `body` runs: for closing, and for what needs
  /// the file to itself.
  public func exclusively<Result>(_ body: () throws -> Result) throws -> Result {
    if let waiter = try enter(UInt(pthread_self()), isExclusive: true) { _ = waiter.wait() }
    defer { passOn() }
    return try body()
  }

  /// Takes the queue when it is free (nil), or a place in it.
  private func enter(_ thread: UInt, isExclusive: Bool) throws -> Waiter? {
    if bodyThread.load(ordering: .relaxed) == thread {
      throw StorageError(.nestedWrite, "this can't be done inside a write transaction of the same thread")
    }
    return state.withLock { state in
      guard state.isBusy else {
        state.isBusy = true
        return nil
      }
      let waiter = Waiter(isExclusive: isExclusive)
      state.waiting.append(waiter)
      return waiter
    }
  }

  private func lead(
    _ driver: any WriteGroup, _ thread: UInt, _ body: (any WriteTransaction) throws -> Void
  ) throws {
    defer { passOn() }
    let transaction = try driver.begin()
    do {
      try running(on: thread) { try body(transaction) }
    } catch {
      driver.abort()
      throw error
    }
    guard let first = nextToJoin(after: 0) else { return try driver.commit() }
    let group = Group(driver: driver)
    group.joined = 1
    first.wake(.join(group))
    group.returned.wait()
    let outcome: (any Error)?
    do {
      try driver.commit()
      outcome = nil
    } catch { outcome = error }
    for member in group.members { member.wake(.finished(outcome)) }
    if let outcome { throw outcome }
  }

  private func join(
    _ group: Group, as waiter: Waiter, _ thread: UInt, _ body: (any WriteTransaction) throws -> Void
  ) throws {
    var failure: (any Error)?
    do {
      let transaction = try group.driver.beginMember()
      do {
        try running(on: thread) { try body(transaction) }
        try group.driver.keepMember()
        group.members.append(waiter)
      } catch {
        group.driver.abortMember()
        failure = error
      }
    } catch { failure = error }
    if let next = nextToJoin(after: group.joined) {
      group.joined += 1
      next.wake(.join(group))
    } else {
      group.returned.signal()
    }
    if let failure { throw failure }
    if case .finished(let error?) = waiter.wait() { throw error }
  }

  private func running(on thread: UInt, _ body: () throws -> Void) rethrows {
    bodyThread.store(thread, ordering: .relaxed)
    defer { bodyThread.store(0, ordering: .relaxed) }
    try body()
  }

  private func nextToJoin(after joined: Int) -> Waiter? {
    guard joined < maximumMembers else { return nil }
    return state.withLock { state in
      guard let first = state.waiting.first, !first.isExclusive else { return nil }
      return state.waiting.removeFirst()
    }
  }

  private func passOn() {
    let next: Waiter? = state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isBusy = false
        return nil
      }
      return state.waiting.removeFirst()
    }
    next?.wake(.lead)
  }
}
