import Storage
import TestSupport
import Testing

@testable import ReplicationHTTP

@Suite struct JobLimitTests {
  @Test("at most so many jobs run, in their order") func limit() {
    let limit = JobLimit(2)
    let begun = Lock<[Int]>([])
    let ends = Lock<[@Sendable () -> Void]>([])
    for number in 0..<4 {
      limit.enqueue { ended in
        begun.withLock { $0.append(number) }
        ends.withLock { $0.append(ended) }
      }
    }
    expect(begun.withLock { $0 }, equals: [0, 1])
    ends.withLock { $0 }[1]()
    expect(begun.withLock { $0 }, equals: [0, 1, 2])
    ends.withLock { $0 }[0]()
    expect(begun.withLock { $0 }, equals: [0, 1, 2, 3])
  }

  @Test("many jobs that end at once take no more stack than one") func stack() {
    let limit = JobLimit(1)
    let first = Lock<(@Sendable () -> Void)?>(nil)
    let count = Lock(0)
    limit.enqueue { ended in first.withLock { $0 = ended } }
    for _ in 0..<20_000 {
      limit.enqueue { ended in
        count.withLock { $0 += 1 }
        ended()
      }
    }
    first.withLock { $0 }?()
    expect(count.withLock { $0 }, equals: 20_000)
  }
}
