import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// The write transaction of an engine, as `GroupCommit` uses it.
///
/// The queue makes one call at a time. It calls `begin`, `commit` and `abort` of one transaction on one
/// thread. Members begin and end between these calls, on their own threads. A begun transaction ends with
/// exactly one call of `commit` or `abort`. A begun member ends with `keepMember`, with `abortMember`, or
/// with a `keepMember` that throws and then `abortMember`.
public protocol WriteGroup: AnyObject {
  /// Begins the engine's write transaction and returns it. Waits for other processes. After an error no
  /// transaction is open.
  func begin() throws -> any WriteTransaction
  /// Commits the transaction. If this throws, the transaction has left nothing behind, and `abort` isn't
  /// called.
  func commit() throws
  /// Rolls the transaction back. The engine may have rolled it back already.
  func abort()

  /// Begins a part of the open transaction that can be undone alone (a savepoint or a child transaction).
  func beginMember() throws -> any WriteTransaction
  /// Keeps the part that `beginMember` began. If this throws, the queue calls `abortMember` next.
  func keepMember() throws
  /// Undoes the part that `beginMember` began.
  func abortMember()

  /// Whether a failure has ended the whole transaction or made its commit impossible. A full disk does this
  /// in SQLite.
  ///
  /// The queue then aborts the transaction, no further writer joins it, and all its writers fail.
  var isBroken: Bool { get }

  /// The failure that broke the transaction, if known. All writers get it, even if a body swallowed it.
  var breakage: StorageError? { get }
}

extension WriteGroup {
  /// False: a part fails alone.
  public var isBroken: Bool { false }
  /// Nil: the failure isn't known.
  public var breakage: StorageError? { nil }
}

/// Admits one writer at a time to an engine. Waiting writers share one commit.
///
/// The first writer leads. It begins the transaction and runs its body. Then each writer that waits gets the
/// open transaction in turn. It runs its body on its own thread, in a part that can be undone alone, and
/// passes the transaction on. At last the leader commits for all, and all return. A leader doesn't wait for
/// others to join: a single writer begins, runs and commits. While a commit waits for a disk sync, the next
/// group gathers.
///
/// A writer that joins sees what earlier writers of its group have written. None of it leaves `run` before it
/// is committed, in a result or in an error. So a body that throws waits for the commit too.
///
/// Writers enter strictly in order of arrival. Each writer passes its place directly to the next one, so
/// nobody can overtake. Waiting blocks the thread. Therefore a task of the cooperative pool must not write
/// while other tasks of the pool hold the queue.
public final class GroupCommit: Sendable {
  /// The maximum number of writers that share one commit, including the leader. It limits how long the first
  /// of them waits.
  private let maximumMembers: Int
  private let state = Lock(State())
  /// The thread that runs a body now, or 0. It tells a nested call from a call that has to wait.
  ///
  /// Relaxed access is enough: a thread finds its own number here only if it stored the number itself and
  /// hasn't yet stored 0.
  private let bodyThread = Atomic<UInt>(0)
  /// Begins at random, so that two queues don't give out the same numbers.
  private let currentLineage = Atomic<UInt64>(UInt64.random(in: .min ... .max))

  private let currentTurn = Atomic<UInt64>(0)

  private struct State {
    var isBusy = false
    var waiting = Line()
  }

  /// A first-in-first-out queue.
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

  /// A waiting writer, and the order that it gets when it is woken.
  private final class Waiter: @unchecked Sendable {
    enum Order {
      case lead
      case join(Group)
      case finished((any Error)?)
    }
    /// Whether the waiter needs the queue for itself and can't join a group.
    let isExclusive: Bool
    private let semaphore = CountingSemaphore()
    /// Written before the semaphore is signalled and read after the wait. The semaphore orders the two
    /// accesses.
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

  /// The open transaction that writers pass on. One writer holds it at a time. The semaphores that pass it on
  /// order the accesses.
  private final class Group: @unchecked Sendable {
    let driver: any WriteGroup
    /// The writers that wait for the commit: their part was kept, or their body threw.
    var members: [Waiter] = []
    /// The number of writers that have run a body in the group or have been told to, including the leader.
    var size = 1
    /// The failure that broke the whole transaction.
    var breakage: (any Error)?
    /// Signalled by the last member. The leader then continues.
    let returned = CountingSemaphore()

    init(driver: any WriteGroup) { self.driver = driver }
  }

  /// Makes a queue whose groups have up to `maximumMembers` writers. With 1, every writer has its own commit.
  public init(maximumMembers: Int = 64) { self.maximumMembers = max(1, maximumMembers) }

  /// Runs `body` in a transaction of `driver`, and returns after the commit.
  ///
  /// `body` runs at most once, on the calling thread. Rethrows the error of `body`, or throws the error of
  /// the commit. In both cases the writes of `body` are undone. Throws `nestedWrite` when called inside a
  /// body of the same thread.
  ///
  /// An error of `body` may come from changes of others in the same commit. If that commit fails, there never
  /// were such changes. Then the error isn't rethrown, and `conflict` is thrown: run the transaction again.
  public func run(_ driver: any WriteGroup, _ body: (any WriteTransaction) throws -> Void) throws {
    let thread = UInt(pthread_self())
    guard let waiter = try enter(thread, isExclusive: false) else { return try lead(driver, thread, body) }
    switch waiter.wait() {
    case .lead: try lead(driver, thread, body)
    case .join(let group): try join(group, as: waiter, thread, body)
    case .finished(let error): if let error { throw error }
    }
  }

  /// Runs `body` while no writer is active. Waits for earlier writers and keeps later ones out. Closing uses
  /// it, and operations that need the file for themselves. Throws `nestedWrite` as `run` does.
  public func exclusively<Result>(_ body: () throws -> Result) throws -> Result {
    let thread = UInt(pthread_self())
    if let waiter = try enter(thread, isExclusive: true) { _ = waiter.wait() }
    defer { passOn() }
    return try running(on: thread, body)
  }

  /// See `WriteTransaction.lineage`.
  public var lineage: UInt64 { currentLineage.load(ordering: .relaxed) }

  /// See `WriteTransaction.turn`. Only a body asks.
  public var turn: UInt64 { currentTurn.load(ordering: .relaxed) }

  /// Changes the lineage. A driver calls this in `begin` or `beginMember`, when somebody else has committed
  /// since its last transaction. The queue does it when it loses what a body has left.
  public func breakLineage() { currentLineage.add(1, ordering: .relaxed) }

  /// The number of waiting writers, for tests.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Takes the queue if it is free and returns nil. Otherwise takes a place in the queue.
  private func enter(_ thread: UInt, isExclusive: Bool) throws -> Waiter? {
    if bodyThread.load(ordering: .relaxed) == thread {
      throw StorageError(.nestedWrite, "this isn't possible inside a write transaction of the same thread")
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
    if driver.isBroken {
      let breakage = driver.breakage ?? Self.brokenTransaction
      driver.abort()
      breakLineage()
      throw breakage
    }
    guard let first = nextToJoin(size: 1) else {
      do { return try driver.commit() } catch {
        breakLineage()
        throw error
      }
    }
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
    } catch {
      breakLineage()
      outcome = error
    }
    for member in group.members { member.wake(.finished(outcome)) }
    if let outcome { throw outcome }
  }

  private func join(
    _ group: Group, as waiter: Waiter, _ thread: UInt, _ body: (any WriteTransaction) throws -> Void
  ) throws {
    let driver = group.driver
    var failure: (any Error)?
    do { try runMember(of: driver, thread, body) } catch { failure = error }
    var breakage: (any Error)?
    if driver.isBroken {
      breakage = driver.breakage ?? failure as? StorageError ?? Self.brokenTransaction
      group.breakage = breakage
    } else {
      group.members.append(waiter)
    }
    // Don't use the group after this: another thread owns it.
    if breakage == nil, let next = nextToJoin(size: group.size) {
      group.size += 1
      next.wake(.join(group))
    } else {
      group.returned.signal()
    }
    if let breakage { throw breakage }
    guard case .finished(let lost) = waiter.wait() else {
      preconditionFailure("a member was woken before the end of its group")
    }
    // What made the body throw may be what wasn't committed.
    if failure != nil, let lost { throw Self.refusedByLostChanges(lost) }
    if let error = failure ?? lost { throw error }
  }

  /// Runs a body in its part of the open transaction. Undoes the part if it fails.
  private func runMember(
    of driver: any WriteGroup, _ thread: UInt, _ body: (any WriteTransaction) throws -> Void
  ) throws {
    let transaction = try driver.beginMember()
    do {
      try running(on: thread) { try body(transaction) }
    } catch {
      driver.abortMember()
      throw error
    }
    do { try driver.keepMember() } catch {
      driver.abortMember()
      breakLineage()
      throw error
    }
  }

  private static func refusedByLostChanges(_ error: any Error) -> StorageError {
    StorageError(
      .conflict,
      "a transaction failed because of changes that then couldn't be committed (\(error)); run it again")
  }

  private static var brokenTransaction: StorageError {
    StorageError(.engineFailure, "the engine ended a write transaction after a failure inside it")
  }

  private func running<Result>(on thread: UInt, _ body: () throws -> Result) rethrows -> Result {
    bodyThread.store(thread, ordering: .relaxed)
    currentTurn.add(1, ordering: .relaxed)
    defer { bodyThread.store(0, ordering: .relaxed) }
    return try body()
  }

  /// Returns the next writer for a group of `size` writers. Returns nil if the group is full, if nobody
  /// waits, or if the next waiter needs the queue for itself.
  private func nextToJoin(size: Int) -> Waiter? {
    guard size < maximumMembers else { return nil }
    return state.withLock { state in
      guard let first = state.waiting.first, !first.isExclusive else { return nil }
      return state.waiting.popFirst()
    }
  }

  /// Passes the queue to the next waiter.
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
