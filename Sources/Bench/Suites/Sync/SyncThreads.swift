import BenchmarkKit
import Datasets
import Storage
import Synchronization
import Touchstone

/// A thread that reads and a thread that applies revisions, at the same time on one database.
final class SyncThreads: Sendable {
  private let database: Database
  private let data: SyncData
  private let batch: Int
  private let seed: UInt64
  private let isOver = Atomic(false)
  /// The number of updates applied during `timeReads`.
  private let updates = Atomic(0)

  /// `batch` is the number of revisions per transaction during `timeReads`; 0 means no updates.
  init(_ database: Database, _ data: SyncData, batch: Int, seed: UInt64) {
    self.database = database
    self.data = data
    self.batch = batch
    self.seed = seed
  }

  /// Times single reads of random documents, each in a new snapshot, while another thread updates documents.
  func timeReads() throws -> Trial.Duration {
    let result = Lock<(histogram: LatencyHistogram, nanoseconds: UInt64)>((LatencyHistogram(), 0))
    let order = data.order
    _ = try ThreadGroup.run(batch == 0 ? 1 : 2) { [self] thread in
      if thread == 1 { return try update(order) }
      defer { isOver.store(true, ordering: .relaxed) }
      var histogram = LatencyHistogram()
      let begin = Clock.nanoseconds()
      try read(data.reads, into: &histogram)
      let nanoseconds = Clock.nanoseconds() - begin
      result.withLock { $0 = (histogram, nanoseconds) }
    }
    let (histogram, nanoseconds) = result.withLock { $0 }
    return .latencies(histogram, seconds: Double(nanoseconds) / 1e9)
  }

  /// Returns the seconds that `apply` takes on a separate thread while another one reads documents.
  func timeApply(_ apply: @escaping @Sendable () throws -> Void) throws -> Double {
    let nanoseconds = Lock<UInt64>(0)
    _ = try ThreadGroup.run(2) { [self] thread in
      if thread == 0 {
        defer { isOver.store(true, ordering: .relaxed) }
        let begin = Clock.nanoseconds()
        try apply()
        let taken = Clock.nanoseconds() - begin
        nanoseconds.withLock { $0 = taken }
      } else {
        var histogram = LatencyHistogram()
        try read(.max, into: &histogram)
      }
    }
    return Double(nanoseconds.withLock { $0 }) / 1e9
  }

  private func read(_ count: Int, into histogram: inout LatencyHistogram) throws {
    var random = SeededRandom(seed: seed)
    let ids = (0..<min(count, 4_096)).map { _ in HotelDocument.id(random.below(data.documents)) }
    let key = try database.key("stars")
    var number = 0
    // The end of a read is the start of the next one.
    var before = Clock.nanoseconds()
    while number < count, count < .max || !isOver.load(ordering: .relaxed) {
      let stars = try database.document(ids[number % ids.count])?[key].int ?? 0
      let now = Clock.nanoseconds()
      histogram.record(now - before)
      before = now
      if !(1...5).contains(stars) {
        throw RunMismatch(what: "stars of a document", found: "\(stars)", expected: "1 to 5")
      }
      number += 1
    }
  }

  /// Updates documents in turn until the reader has ended.
  private func update(_ order: [Int]) throws {
    var applied = 0
    while !isOver.load(ordering: .relaxed) {
      let revisions = (applied..<applied + batch).map { place in
        SyncRevisions.update(
          order[place % order.count], generation: SyncRevisions.storedGeneration + 1 + place / order.count
        ).revision
      }
      try RunMismatch.check("updates stored", try database.apply(revisions), batch)
      applied += batch
    }
    updates.store(applied, ordering: .relaxed)
  }

  /// Throws if the database has the wrong content after `timeReads`.
  func check() throws {
    try RunMismatch.check("documents after the reads", try database.documentCount, data.documents)
    let applied = updates.load(ordering: .relaxed)
    for (place, number) in data.order.enumerated() {
      let passes = applied / data.documents + (place < applied % data.documents ? 1 : 0)
      let id = HotelDocument.id(number)
      try RunMismatch.check(
        "the current revision of \(id)", try database.document(id)?.revisionID.description,
        SyncRevisions.current(number, generation: SyncRevisions.storedGeneration + passes))
    }
  }
}
