import Synchronization

/// Tells a job on a worker's thread that the task that waits for it was cancelled.
package final class JobCancellation: Sendable {
  private let cancelled = Atomic<Bool>(false)

  /// Makes one that isn't cancelled.
  package init() {}

  /// Whether the waiting task was cancelled.
  package var isCancelled: Bool { cancelled.load(ordering: .acquiring) }

  /// Throws `CancellationError` if the waiting task was cancelled.
  package func check() throws {
    if isCancelled { throw CancellationError() }
  }

  package func cancel() { cancelled.store(true, ordering: .releasing) }
}

extension Workers {
  /// Runs `body` on a worker's thread and returns its result. The calling task waits without a thread.
  ///
  /// If the task is cancelled before `body` starts, `body` never runs, and the call throws
  /// `CancellationError` at once. Afterwards `body` decides: it can ask the `JobCancellation`, and `onCancel`
  /// is called on the cancelling thread. A result that `body` returns nevertheless is returned.
  package func run<Result: Sendable>(
    onCancel: @escaping @Sendable () -> Void = {},
    _ body: @escaping @Sendable (JobCancellation) throws -> Result
  ) async throws -> Result {
    let job = AsyncJob<Result>()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard job.wait(continuation) else { return continuation.resume(throwing: CancellationError()) }
        enqueue { job.run(body) }
      }
    } onCancel: {
      job.cancel()
      onCancel()
    }
  }
}

/// A job that a task waits for. Its continuation is resumed exactly once: by the thread that runs the job, or
/// by the cancellation before that.
private final class AsyncJob<Result: Sendable>: Sendable {
  private enum State {
    case created
    case waiting(CheckedContinuation<Result, any Error>)
    case running
    case cancelled
  }

  private let state = Lock(State.created)
  private let cancellation = JobCancellation()

  /// Takes the continuation. Returns false if the job was cancelled before; the caller keeps it then.
  func wait(_ continuation: CheckedContinuation<Result, any Error>) -> Bool {
    state.withLock { state in
      guard case .created = state else { return false }
      state = .waiting(continuation)
      return true
    }
  }

  func run(_ body: (JobCancellation) throws -> Result) {
    let waiting = state.withLock { state -> CheckedContinuation<Result, any Error>? in
      guard case .waiting(let continuation) = state else { return nil }
      state = .running
      return continuation
    }
    waiting?.resume(with: Swift.Result { try body(cancellation) })
  }

  func cancel() {
    cancellation.cancel()
    let waiting = state.withLock { state -> CheckedContinuation<Result, any Error>? in
      switch state {
      case .created: state = .cancelled
      case .waiting(let continuation):
        state = .cancelled
        return continuation
      case .running, .cancelled: break
      }
      return nil
    }
    waiting?.resume(throwing: CancellationError())
  }
}
