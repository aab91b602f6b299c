import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// An engine's write transaction as `WriteQueue` drives it.
///
/// All calls come one at a time. `begin`, `commit` and `abort` of one transaction come on one thread; members
/// begin and end between them on their own threads. A transaction that was begun ends by exactly one call of
/// `commit` or `abort`, a member that was begun by `keepMember`, `abortMember`, or `keepMember` that throws and
/// `abortMember` after it.
public protocol WriteGroup: AnyObject {
  /// Begins the engine's write transaction and returns it. Waits for other processes. When this throws,
  /// nothing is open.
  func begin() throws -> any WriteTransaction
  /// Commits it. When this throws nothing of it remains, and `abort` isn't called.
  func commit() throws
  /// Undoes it, also when the engine has undone it already.
  func abort()

  /// Begins a part that can be undone alone (a savepoint, a child transaction) inside the open transaction.
  func beginMember() throws -> any WriteTransaction
  /// Keeps the part that `beginMember` began. When this throws, `abortMember` is called next.
  func keepMember() throws
  func abortMember()

  /// Whether a failure inside has ended the whole transaction, as a full disk does in SQLite, or made it
  /// impossible to commit. Then it is aborted, nobody joins it any more, and all who took part fail.
  var isBroken: Bool { get }

  /// The failure that did that, when it is known: who takes part is told, also when a body swallowed it.
  var breakage: StorageError? { get }
}

extension WriteGroup {
  /// False: parts fail alone.
  public var isBroken: Bool { false }
  /// Not known.
  public var breakage: StorageError? { nil }
}

/// Lets one writer at a time into an engine, and lets those that wait share its commit.
///
/// The first writer leads: it begins the transaction and runs its body. Then each writer that waits by now is
/// handed the open transaction in turn, runs its body on its own thread in a part that can be undone alone,
/// and hands on; at last the leader commits for all, and all return. Nobody waits for company: a writer
/// alone begins, runs and commits. When a commit costs a sync of the disk, the next group gathers meanwhile.
///
/// Writers get in strictly in the order in which they came; the place is handed over, never up for grabs.
/// Waiting blocks the thread, so a task of the cooperative pool must not write while others of the pool hold
/// the queue up.
public final class WriteQueue: Sendable {
  /// How many may share one commit, the leader included: bounds how long the first of them waits.
  private let maximumMembers: Int
  private let state = Lock(State())
  /// The thread that runs a body now (0: none), to tell a nested call from one that has to wait. Relaxed
  /// access is enough: a thread finds its own number here only if it stored it itself and hasn't yet stored 0.
  private let bodyThread = Atomic<UInt>(0)

  private struct State {
    var isBusy = false
    var waiting = Line()
  }

  /// A first-in-first-out queue that takes nothing out of the middle.
  private struct Line {
    private var items: [Waiter?] = []
    private var head = 0

    var count: Int { items.count - head }
    var first: Waiter? { head < items.count ? items[head] : nil }

    mutating func append(_ waiter: Waiter) { items.append(waiter) }

    mutating func popFirst() -> Waiter? {
      guard let waiter = first else { return nil }
      items[head] = nil
      head += 1
      if head == items.count {
        items.removeAll(keepingCapacity: true)
        head = 0
      } else if head >= 64, head * 2 >= items.count {
        items.removeFirst(head)
        head = 0
      }
      return waiter
    }
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
    private let semaphore = CountingSemaphore()
    /// Written before the semaphore is signalled and read after it: the semaphore orders the two.
    private var order: Order?

    init(isExclusive: Bool) { self.isExclusive = isExclusive }

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

  /// The open transaction on its way from writer to writer. One of them has it at a time; the semaphores by
  /// which it is handed on order their accesses.
  private final class Group: @unchecked Sendable {
    let driver: any WriteGroup
    /// Those whose part was kept and who wait for the commit.
    var members: [Waiter] = []
    /// Those who ran a body in it, the leader included.
    var size = 1
    /// What broke the whole transaction.
    var breakage: (any Error)?
    /// Signalled by the last of them: the leader goes on.
    let returned = CountingSemaphore()

    init(driver: any WriteGroup) { self.driver = driver }
  }

  /// A queue whose groups have up to `maximumMembers` writers; 1 gives every writer a commit of its own.
  public init(maximumMembers: Int = 64) { self.maximumMembers = max(1, maximumMembers) }

  /// Runs `body` in a transaction of `driver`. Returns when it is committed; throws what `body` threw, or
  /// why the commit failed, and then nothing of `body` remains.
  ///
  /// `body` runs at most once, on the calling thread. Throws `nestedWrite` when it is called in a body of the
  /// same thread.
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
  /// the file to itself. Throws `nestedWrite` as `run` does.
  public func exclusively<Result>(_ body: () throws -> Result) throws -> Result {
    let thread = UInt(pthread_self())
    if let waiter = try enter(thread, isExclusive: true) { _ = waiter.wait() }
    defer { passOn() }
    return try running(on: thread, body)
  }

  /// How many wait, for tests.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

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
      if driver.isBroken { throw driver.breakage ?? Self.brokenTransaction }
    } catch {
      driver.abort()
      throw error
    }
    guard let first = nextToJoin(size: 1) else { return try driver.commit() }
    let group = Group(driver: driver)
    group.size = 2
    first.wake(.join(group))
    group.returned.wait()
    let outcome: (any Error)?
    do {
      if let breakage = group.breakage {
        driver.abort()
        throw breakage
      }
      try driver.commit()
      outcome = nil
    } catch { outcome = error }
    for member in group.members { member.wake(.finished(outcome)) }
    if let outcome { throw outcome }
  }

  private func join(
    _ group: Group, as waiter: Waiter, _ thread: UInt, _ body: (any WriteTransaction) throws -> Void
  ) throws {
    let driver = group.driver
    var failure: (any Error)?
    do {
      let transaction = try driver.beginMember()
      do {
        try running(on: thread) { try body(transaction) }
        try driver.keepMember()
      } catch {
        driver.abortMember()
        throw error
      }
    } catch { failure = error }
    if driver.isBroken {
      group.breakage = driver.breakage ?? failure as? StorageError ?? Self.brokenTransaction
      failure = failure ?? group.breakage
    } else if failure == nil {
      group.members.append(waiter)
    }
    // The group isn't touched after this: another thread has it.
    if group.breakage == nil, let next = nextToJoin(size: group.size) {
      group.size += 1
      next.wake(.join(group))
    } else {
      group.returned.signal()
    }
    if let failure { throw failure }
    if case .finished(let error?) = waiter.wait() { throw error }
  }

  private static var brokenTransaction: StorageError {
    StorageError(.engineFailure, "the engine ended a write transaction after a failure inside it")
  }

  private func running<Result>(on thread: UInt, _ body: () throws -> Result) rethrows -> Result {
    bodyThread.store(thread, ordering: .relaxed)
    defer { bodyThread.store(0, ordering: .relaxed) }
    return try body()
  }

  /// The next writer for a group that has `size` by now, unless the next in line needs the queue to itself.
  private func nextToJoin(size: Int) -> Waiter? {
    guard size < maximumMembers else { return nil }
    return state.withLock { state in
      guard let first = state.waiting.first, !first.isExclusive else { return nil }
      return state.waiting.popFirst()
    }
  }

  /// Hands the queue to the next in line.
  private func passOn() {
    let next: Waiter? = state.withLock { state in
      guard let next = state.waiting.popFirst() else {
        state.isBusy = false
        return nil
      }
      return next
    }
    next?.wake(.lead)
  }
}
