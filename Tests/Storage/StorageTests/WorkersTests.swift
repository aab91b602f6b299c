import Storage
import StorageConformance
import TestTools

@testable import System

@Suite(.serialized) struct WorkersTests {
  @Test func jobsOfOneThreadRunInTheirOrderAlsoAfterTheWorkersAreReleased() {
    let seen = Lock<[Int]>([])
    let last = CountingSemaphore()
    var workers: Workers? = Workers()
    for number in 0..<1_000 {
      workers?.enqueue {
        seen.withLock { $0.append(number) }
        if number == 999 { last.signal() }
      }
    }
    workers = nil
    last.wait()
    expect(seen.withLock { $0 }, equals: Array(0..<1_000))
  }

  @Test func whoWaitsForTheEndOfAllJobsWaitsForThoseThatTheyEnqueueToo() {
    let workers = Workers(maximum: 3)
    expect(workers.waitUntilQuiet(seconds: 0))
    for _ in 0..<200 {
      let ended = Lock(0)
      for _ in 0..<5 {
        workers.enqueue {
          workers.enqueue { ended.withLock { $0 += 1 } }
          ended.withLock { $0 += 1 }
        }
      }
      expect(workers.waitUntilQuiet(seconds: 300))
      expect(ended.withLock { $0 }, equals: 10)
    }
    let (mayGo, waited) = (CountingSemaphore(), CountingSemaphore())
    workers.enqueue {
      mayGo.wait()
      // Not for itself.
      if workers.waitUntilQuiet(seconds: 300) { waited.signal() }
    }
    expect(!workers.waitUntilQuiet(seconds: 0))
    mayGo.signal()
    expect(waited.wait(seconds: 300))
  }

  /// The end of a thread is seen by what it destroys of its own.
  private static let ended: (key: pthread_key_t, count: CountingSemaphore) = {
    var key = pthread_key_t()
    pthread_key_create(&key) { argument in
      guard let argument else { return }
      Unmanaged<CountingSemaphore>.fromOpaque(argument).takeRetainedValue().signal()
    }
    return (key, CountingSemaphore())
  }()

  /// Holds workers, as what uses them does.
  private final class Owner: Sendable { let workers = Workers() }

  @Test func aJobMayHoldTheLastReferenceToItsWorkers() {
    for _ in 0..<100 {
      var owner: Owner? = Owner()
      let mayRun = CountingSemaphore()
      owner?.workers.enqueue { [owner] in
        pthread_setspecific(Self.ended.key, Unmanaged.passRetained(Self.ended.count).toOpaque())
        mayRun.wait()
        withExtendedLifetime(owner) {}
      }
      owner = nil
      mayRun.signal()
      // The thread ends: it isn't stuck in the release of the workers.
      expect(Self.ended.count.wait(seconds: 300))
    }
  }

  /// Jobs that are blocked until `mayGo`, and count themselves while they wait.
  private func block(
    _ workers: Workers, _ count: Int, _ blocked: CountingSemaphore, _ mayGo: CountingSemaphore
  ) {
    for _ in 0..<count {
      workers.enqueue {
        Workers.whileBlocked {
          blocked.signal()
          mayGo.wait()
        }
      }
    }
  }

  @Test func othersRunBesideJobsThatAreBlocked() {
    let workers = Workers(maximum: 1, spare: 2)
    let (blocked, mayGo, ran) = (CountingSemaphore(), CountingSemaphore(), CountingSemaphore())
    block(workers, 2, blocked, mayGo)
    for _ in 0..<2 { expect(blocked.wait(seconds: 300)) }
    expect(!workers.isStarved)
    workers.enqueue { ran.signal() }
    expect(ran.wait(seconds: 300))
    // A third one takes the last thread.
    block(workers, 1, blocked, mayGo)
    expect(blocked.wait(seconds: 300))
    workers.enqueue { ran.signal() }
    expect(!ran.wait(seconds: 0.1))
    expect(workers.isStarved)
    for _ in 0..<3 { mayGo.signal() }
    expect(ran.wait(seconds: 300))
    expect(!workers.isStarved)
  }

  @Test func afterTheyWereBlockedNoMoreRunThanMay() {
    let workers = Workers(maximum: 2, spare: 8)
    let running = Lock<(now: Int, most: Int)>((0, 0))
    let (blocked, mayGo, done) = (CountingSemaphore(), CountingSemaphore(), CountingSemaphore())
    block(workers, 8, blocked, mayGo)
    for _ in 0..<8 { expect(blocked.wait(seconds: 300)) }
    for _ in 0..<8 { mayGo.signal() }
    for _ in 0..<200 {
      workers.enqueue {
        running.withLock { running in
          running.now += 1
          running.most = max(running.most, running.now)
        }
        usleep(200)
        running.withLock { $0.now -= 1 }
        done.signal()
      }
    }
    for _ in 0..<200 { expect(done.wait(seconds: 300)) }
    expect(running.withLock { $0.most } <= 2)
  }

  @Test func idleThreadsEndWithTheWorkers() {
    var workers: Workers? = Workers(maximum: 3)
    let begun = CountingSemaphore()
    let together = CountingSemaphore()
    let done = CountingSemaphore()
    for _ in 0..<3 {
      workers?.enqueue {
        pthread_setspecific(Self.ended.key, Unmanaged.passRetained(Self.ended.count).toOpaque())
        begun.signal()
        together.wait()
        done.signal()
      }
    }
    // Each of them on a thread of its own.
    for _ in 0..<3 { begun.wait() }
    for _ in 0..<3 { together.signal() }
    for _ in 0..<3 { done.wait() }
    workers = nil
    // Half the time after which idle threads end by themselves.
    for _ in 0..<3 { expect(Self.ended.count.wait(seconds: 5)) }
  }

  /// Each group of jobs needs all threads at the same time: a wake that gets lost stops it. Threads end all the time, because they
  /// hardly wait for work.
  @Test(arguments: [0.000_02, 0.000_2, 0.002, 10]) func noJobWaitsWhileAThreadMayTakeIt(
    idleSeconds: Double
  ) {
    let threads = 3
    let workers = Workers(maximum: threads, spare: 2, idleSeconds: idleSeconds)
    var random = SeededGenerator(seed: testSeed)
    let short = Lock(0)
    var sent = 0
    for round in 0..<300 {
      let (begun, together, done) = (CountingSemaphore(), CountingSemaphore(), CountingSemaphore())
      // Jobs that are over at once, so that threads are on their way to nothing.
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        sent += 1
        workers.enqueue { short.withLock { $0 += 1 } }
      }
      if Bool.random(using: &random) { usleep(UInt32.random(in: 0..<400, using: &random)) }
      for number in 0..<threads + 2 {
        workers.enqueue {
          let wait = {
            begun.signal()
            together.wait()
          }
          // Two of them don't count.
          if number < 2 { Workers.whileBlocked(wait) } else { wait() }
          done.signal()
        }
      }
      var isTogether = true
      for _ in 0..<threads + 2 { isTogether = isTogether && begun.wait(seconds: 60) }
      expect(isTogether, "round \(round)")
      for _ in 0..<threads + 2 { together.signal() }
      for _ in 0..<threads + 2 { isTogether = isTogether && done.wait(seconds: 60) }
      guard isTogether else { return }
    }
    let last = CountingSemaphore()
    workers.enqueue { last.signal() }
    expect(last.wait(seconds: 60))
    // The last one may have overtaken those that other threads had taken.
    eventually { short.withLock { $0 } == sent }
  }
}
