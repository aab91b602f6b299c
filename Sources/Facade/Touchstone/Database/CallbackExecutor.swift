/// Where the handler of a live query is called.
///
/// ```swift
/// let queue = DispatchQueue(label: "lists")
/// let live = try travel.observe(hotels, on: CallbackExecutor { queue.async(execute: $0) }) { outcome in … }
/// ```
///
/// For the main actor, pass `MainActor.shared` instead: then the handler is isolated to it.
///
/// On any executor, also on one that runs jobs at the same time, calls come one at a time and in order: the
/// next job is handed over when the last call has returned. An executor that is slow gets the latest result
/// only.
public struct CallbackExecutor: Sendable {
  let enqueue: @Sendable (_ job: @escaping @Sendable () -> Void) -> Void

  /// The thread of the live query, which also runs the query. This is the default.
  public static let background = CallbackExecutor { $0() }

  /// The main actor, for a handler that isn't isolated to it.
  static let main = CallbackExecutor { job in Task { @MainActor in job() } }

  /// An executor that hands each job to `enqueue`, which has to run it once, soon, and on any thread.
  public init(_ enqueue: @escaping @Sendable (_ job: @escaping @Sendable () -> Void) -> Void) {
    self.enqueue = enqueue
  }

  /// The executor of an actor.
  public init(_ actor: any Actor) {
    enqueue = { job in Task { await actor.run(job) } }
  }

  /// A task executor.
  public init(_ executor: any TaskExecutor) {
    enqueue = { job in Task(executorPreference: executor) { job() } }
  }
}

extension Actor {
  fileprivate func run(_ job: @Sendable () -> Void) { job() }
}
