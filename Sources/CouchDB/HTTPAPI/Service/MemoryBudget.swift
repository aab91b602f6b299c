import Storage
import System
import Views

/// The memory that the bodies of all requests may take together, and what is made of them.
///
/// A request takes more as its body grows (`RequestMemory`), and gives all of it back with its answer. One for which there isn't enough
/// waits for a time, together with few others. Some of those that wait may hold memory themselves; when no other is left that could give
/// any back, the one that came last is refused, so that the others go on.
final class MemoryBudget: Sendable {
  /// A request that waits. The budget's lock guards it.
  private final class Waiter: @unchecked Sendable {
    let bytes: Int
    /// Whether the request holds memory.
    let holds: Bool
    /// Nil while it waits.
    var isGranted: Bool?
    let semaphore = CountingSemaphore()

    init(_ bytes: Int, holds: Bool) {
      self.bytes = bytes
      self.holds = holds
    }
  }

  private struct State {
    var free: Int
    /// The requests that hold memory, and don't wait.
    var running = 0
    var waiting: [Waiter] = []
  }

  /// The most requests that wait. Each has a thread.
  private static let maximumWaiting = 16
  /// After a request with more than this, memory that is free goes back to the system. It would stay with the allocator otherwise.
  private static let returnedBytes = 16 << 20

  /// What there is altogether, in bytes.
  let total: Int
  private let waitSeconds: Double
  private let state: Lock<State>
  private let workers = Workers(maximum: 1)

  init(bytes: Int, waitSeconds: Double) {
    total = max(bytes, 0)
    self.waitSeconds = waitSeconds
    state = Lock(State(free: total))
  }

  /// What isn't taken, in bytes.
  var free: Int { state.withLock { $0.free } }
  /// The number of requests that wait.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  /// Takes memory for a request, of which `holds` says whether it holds some already. Waits if there isn't enough; false if there isn't
  /// any for it then.
  func take(_ bytes: Int, holds: Bool) -> Bool {
    enum Outcome { case taken, refused, waits(Waiter) }
    let outcome = state.withLock { state -> Outcome in
      if bytes <= state.free {
        state.free -= bytes
        if !holds { state.running += 1 }
        return .taken
      }
      guard state.waiting.count < Self.maximumWaiting else { return .refused }
      let waiter = Waiter(bytes, holds: holds)
      if holds { state.running -= 1 }
      state.waiting.append(waiter)
      settle(&state)
      return .waits(waiter)
    }
    switch outcome {
    case .taken: return true
    case .refused: return false
    case .waits(let waiter):
      _ = Workers.whileBlocked { waiter.semaphore.wait(seconds: waitSeconds) }
      return state.withLock { state in
        if waiter.isGranted == nil { end(waiter, isGranted: false, &state) }
        return waiter.isGranted == true
      }
    }
  }

  /// Takes back all that a request holds.
  func give(_ bytes: Int) {
    guard bytes > Self.returnedBytes else { return release(bytes) }
    workers.enqueue { [self] in
      FreedMemory.giveBack()
      release(bytes)
    }
  }

  private func release(_ bytes: Int) {
    state.withLock { state in
      state.free += bytes
      state.running -= 1
      settle(&state)
    }
  }

  private func settle(_ state: inout State) {
    for waiter in state.waiting where waiter.bytes <= state.free { end(waiter, isGranted: true, &state) }
    while state.running == 0, let last = state.waiting.last { end(last, isGranted: false, &state) }
  }

  private func end(_ waiter: Waiter, isGranted: Bool, _ state: inout State) {
    state.waiting.removeAll { $0 === waiter }
    waiter.isGranted = isGranted
    if isGranted { state.free -= waiter.bytes }
    if isGranted || waiter.holds { state.running += 1 }
    waiter.semaphore.signal()
  }
}

/// The memory that one request takes from the budget. It is given back when the request and its answer are released.
///
/// The first bytes are free, so that small requests are answered whatever others do.
final class RequestMemory: Sendable {
  /// What a request takes without asking the budget, in bytes.
  static let freeBytes = 32 << 10
  /// The budget is asked for so many bytes at once.
  private static let step = 256 << 10

  private let budget: MemoryBudget
  private let state = Lock<(wanted: Int, taken: Int)>((0, 0))

  init(_ budget: MemoryBudget) { self.budget = budget }

  deinit {
    let taken = state.withLock { $0.taken }
    if taken > 0 { budget.give(taken) }
  }

  /// Takes memory until the request is over. Throws 413 if the request alone needs more than there is at all, and 503 if others have it.
  func hold(_ bytes: Int) throws {
    let (missing, taken) = state.withLock { state in
      state.wanted += bytes
      return (state.wanted - Self.freeBytes - state.taken, state.taken)
    }
    guard missing > 0 else { return }
    let most = budget.total - taken
    guard missing <= most else {
      throw CouchDBError(
        413, "too_large",
        "the request needs more than the \(budget.total) bytes of memory that there are for it")
    }
    let more = min((missing + Self.step - 1) / Self.step * Self.step, most)
    guard budget.take(more, holds: taken > 0) else { throw Self.busy }
    state.withLock { $0.taken += more }
  }

  /// Takes memory while `body` runs. It stays with the request for what it needs next.
  func holding<Result>(_ bytes: Int, _ body: () throws -> Result) throws -> Result {
    try hold(bytes)
    defer { state.withLock { $0.wanted -= bytes } }
    return try body()
  }

  private static let busy = AnswerInstead(
    answer: .error(
      CouchDBError(503, "service_unavailable", "other requests have the memory; try again later"),
      headers: [.init("Retry-After", "1")]))
}
