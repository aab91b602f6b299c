import CTouchstone
import Storage
import Synchronization
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// The batches that threads of C are in. All handles of one path share the writer, so they share its batch too.
private enum Batches {
  /// A thread, and the path of a database.
  struct Place: Hashable {
    let thread: UInt
    let path: String

    init(_ path: String) {
      thread = UInt(pthread_self())
      self.path = path
    }
  }

  /// The batches that were begun and not ended, and the number of callbacks that run inside each other.
  private static let table = Lock<(held: [Place: HeldBatch], running: [Place: Int])>(([:], [:]))
  /// The number of batches of both kinds. Who sees 0 is in none.
  static let count = Atomic<Int>(0)

  static func held(_ place: Place) -> HeldBatch? { table.withLock { $0.held[place] } }

  static func isIn(_ place: Place) -> Bool {
    count.load(ordering: .relaxed) > 0 && table.withLock { $0.held[place] != nil || $0.running[place] != nil }
  }

  static func add(_ batch: HeldBatch, at place: Place) {
    table.withLock { $0.held[place] = batch }
    count.add(1, ordering: .relaxed)
  }

  static func take(_ place: Place) -> HeldBatch? {
    guard let batch = table.withLock({ $0.held.removeValue(forKey: place) }) else { return nil }
    count.subtract(1, ordering: .relaxed)
    return batch
  }

  static func running<Result>(_ place: Place, _ body: () throws -> Result) rethrows -> Result {
    table.withLock { $0.running[place, default: 0] += 1 }
    count.add(1, ordering: .relaxed)
    defer {
      count.subtract(1, ordering: .relaxed)
      table.withLock { table in
        let depth = table.running[place, default: 1] - 1
        table.running[place] = depth == 0 ? nil : depth
      }
    }
    return try body()
  }
}

/// A database that C has open.
final class DatabaseHandle: Sendable {
  let database: Database
  private let path: String
  /// Where batches were begun with this handle, to roll them back when it is freed.
  private let begun = Lock<Set<Batches.Place>>([])
  /// The thread that held batches run on.
  private let worker = Workers(maximum: 1)

  init(_ database: Database) {
    self.database = database
    path = database.path
  }

  deinit { for place in begun.withLock({ $0 }) { Batches.take(place)?.rollBack() } }

  /// Runs `body` where the calling thread's batch runs, if it has begun one.
  @inline(__always)
  func perform<Result>(_ body: (Database) throws -> Result) throws -> Result {
    guard _slowPath(Batches.count.load(ordering: .relaxed) > 0) else { return try body(database) }
    return try performInBatch(body)
  }

  @inline(never)
  private func performInBatch<Result>(_ body: (Database) throws -> Result) throws -> Result {
    guard let batch = Batches.held(Batches.Place(path)) else { return try body(database) }
    return try batch.run { try body(database) }
  }

  /// Whether the calling thread is in a batch of either kind: its own thread has to read, to see the writes.
  var isInBatch: Bool { Batches.isIn(Batches.Place(path)) }

  /// Runs `body` in a batch on the calling thread.
  func batch(attempts: Int, _ body: () throws -> Void) throws {
    let place = Batches.Place(path)
    if let batch = Batches.held(place) {
      // The body calls this library on the calling thread, and its calls go to the batch.
      do { return try body() } catch {
        batch.fail()
        throw error
      }
    }
    try Batches.running(place) { try database.inBatch(attempts: max(1, attempts), body) }
  }

  func begin() throws {
    let place = Batches.Place(path)
    guard !Batches.isIn(place) else { throw Misuse("the thread is in a batch already") }
    let batch = try HeldBatch(database, on: worker)
    Batches.add(batch, at: place)
    begun.withLock { _ = $0.insert(place) }
  }

  func end(_ end: (HeldBatch) throws -> Void) throws {
    let place = Batches.Place(path)
    guard let batch = Batches.take(place) else {
      throw Misuse("the thread has begun no batch of this database")
    }
    begun.withLock { _ = $0.remove(place) }
    try end(batch)
  }
}

/// A write transaction that stays open between calls, on a thread of its own that runs what it is handed.
final class HeldBatch: @unchecked Sendable {
  private struct RolledBack: Error {}
  /// Whether a batch inside it has failed. Only the caller uses it.
  private var hasFailed = false
  private enum Step {
    case run(() -> Void)
    case commit
    case rollBack
  }

  // The two threads take turns: one of the semaphores hands everything below to the other thread.
  private let toWorker = CountingSemaphore()
  private let toCaller = CountingSemaphore()
  private var step = Step.rollBack
  /// The outcome of the transaction, once it has ended.
  private var outcome: Result<Void, any Error>?

  /// Begins a transaction. Waits while others write.
  init(_ database: Database, on worker: Workers) throws {
    worker.enqueue { [self] in
      let result = Result {
        // What was done in it can't be done again here, so it runs once.
        try database.inBatch(attempts: 1) { try loop() }
      }
      outcome = result
      toCaller.signal()
    }
    toCaller.wait()
    if case .failure(let error) = outcome { throw error }
  }

  private func loop() throws {
    toCaller.signal()
    while true {
      toWorker.wait()
      guard try takeStep() else { return }
      toCaller.signal()
    }
  }

  /// Does what comes next. Returns false to commit.
  ///
  /// It isn't inlined, so that it holds nothing of the caller's any more when it has returned.
  @inline(never)
  private func takeStep() throws -> Bool {
    let next = step
    step = .rollBack
    switch next {
    case .run(let work):
      work()
      return true
    case .commit: return false
    case .rollBack: throw RolledBack()
    }
  }

  private func take(_ next: Step) {
    step = next
    toWorker.signal()
    toCaller.wait()
  }

  /// Runs `body` in the transaction.
  func run<Result>(_ body: () throws -> Result) throws -> Result {
    var result: Swift.Result<Result, any Error>?
    withoutActuallyEscaping(body) { body in
      take(.run { result = Swift.Result { try body() } })
    }
    // The step has run.
    return try result.unsafelyUnwrapped.get()
  }

  /// Makes the batch fail, as a batch inside it has.
  func fail() { hasFailed = true }

  /// Commits. Throws what has made it fail.
  func commit() throws {
    guard !hasFailed else {
      take(.rollBack)
      throw Misuse("a batch inside this one has failed, so it was rolled back")
    }
    take(.commit)
    try outcome?.get()
  }

  /// Rolls back.
  func rollBack() { take(.rollBack) }
}
