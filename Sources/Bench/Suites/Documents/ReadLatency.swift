import BenchmarkKit
import Datasets
import Storage
import Synchronization
import Touchstone

/// Measures the times of single reads by several threads, with or without a writer.
enum ReadLatency {
  private final class Shared: Sendable {
    let reading: Atomic<Int>
    let latencies = Lock<[Double]>([])
    init(_ readers: Int) { reading = Atomic(readers) }
  }

  /// Returns the median and the 99th percentile of the times of reads, in seconds. Each read takes a random
  /// document in a new snapshot. The writer updates random documents, 100 per transaction, until all readers
  /// have ended.
  static func measure(
    _ database: Database, documents: Int, readers: Int, hasWriter: Bool, readsEach: Int, seed: UInt64
  ) throws -> [Double] {
    let shared = Shared(readers)
    _ = try ThreadGroup.run(readers + (hasWriter ? 1 : 0)) { thread in
      var random = SeededRandom(seed: seed &+ UInt64(thread))
      if thread == readers {
        var version = 1
        while shared.reading.load(ordering: .relaxed) > 0 {
          version += 1
          try database.inBatch {
            for _ in 0..<100 {
              let number = random.below(documents)
              try database.save(DocumentsData.id(number), DocumentsData.body(number, version: version))
            }
          }
        }
        return
      }
      defer { shared.reading.subtract(1, ordering: .relaxed) }
      let ids = (0..<readsEach).map { _ in DocumentsData.id(random.below(documents)) }
      var latencies: [Double] = []
      latencies.reserveCapacity(readsEach)
      let key = try database.key("name")
      var found = 0
      for id in ids {
        let begin = Clock.nanoseconds()
        if let document = try database.document(id), document[key].string != nil { found += 1 }
        latencies.append(Double(Clock.nanoseconds() - begin) / 1e9)
      }
      if found != readsEach { throw RunMismatch(seen: found, expected: readsEach) }
      shared.latencies.withLock { $0 += latencies }
    }
    let latencies = shared.latencies.withLock { $0 }
    return [SampleStatistics.quantile(0.5, of: latencies), SampleStatistics.quantile(0.99, of: latencies)]
  }
}
