import Storage

/// Hands the outcomes of a live query to its handler, on an executor.
///
/// At most one job is with the executor at a time. Outcomes that come meanwhile replace each other, so the
/// handler gets the latest one. `make` makes what the handler gets from the rows and from what the handler got
/// last.
final class LiveDelivery<Rows: Sendable, Value: Sendable>: Sendable {
  private struct State {
    var pending: Result<Value, any Error>?
    /// The last value that the handler got.
    var last: Value?
    /// The number of outcomes that the handler got.
    var takes = 0
    /// Whether a job is with the executor, or the handler is being called.
    var isScheduled = false
    var isEnded = false
  }

  private let executor: CallbackExecutor
  private let make: @Sendable (_ last: Value?, _ rows: Rows) -> Value
  private let handler: @Sendable (Result<Value, any Error>) -> Void
  private let state = Lock(State())

  init(
    on executor: CallbackExecutor, _ handler: @escaping @Sendable (Result<Value, any Error>) -> Void,
    make: @escaping @Sendable (_ last: Value?, _ rows: Rows) -> Value
  ) {
    self.executor = executor
    self.handler = handler
    self.make = make
  }

  /// Takes the outcome of a run. The runs of a live query come one after another.
  func post(_ outcome: Result<Rows, any Error>) {
    switch outcome {
    case .failure(let error): put(.failure(error), ifTakes: nil)
    case .success(let rows):
      while true {
        let (last, takes) = state.withLock { ($0.last, $0.takes) }
        // If the handler gets a pending outcome meanwhile, the value is made again. Then nothing is pending.
        if put(.success(make(last, rows)), ifTakes: takes) { return }
      }
    }
  }

  /// Puts an outcome in place of a pending one, and schedules a job if there is none. Returns false if the
  /// handler has got another number of outcomes than `takes`.
  @discardableResult
  private func put(_ outcome: Result<Value, any Error>, ifTakes takes: Int?) -> Bool {
    let (isPut, isJobNeeded) = state.withLock { state in
      if state.isEnded { return (true, false) }
      guard takes == nil || takes == state.takes else { return (false, false) }
      state.pending = outcome
      defer { state.isScheduled = true }
      return (true, !state.isScheduled)
    }
    if isJobNeeded { schedule() }
    return isPut
  }

  private func schedule() { executor.enqueue { self.deliver() } }

  /// Runs on the executor.
  private func deliver() {
    let outcome = state.withLock { state -> Result<Value, any Error>? in
      guard let outcome = state.pending else { return nil }
      state.pending = nil
      state.takes += 1
      if case .success(let value) = outcome { state.last = value }
      return outcome
    }
    guard let outcome else { return }
    handler(outcome)
    let isJobNeeded = state.withLock { state in
      state.isScheduled = state.pending != nil
      return state.isScheduled
    }
    if isJobNeeded { schedule() }
  }

  /// Ends the calls. A call in progress completes.
  func end() {
    state.withLock { state in
      state.isEnded = true
      (state.pending, state.last) = (nil, nil)
    }
  }
}
