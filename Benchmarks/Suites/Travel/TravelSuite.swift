import BenchmarkKit
import Datasets
import Documents
import Storage
import Touchstone

/// Workloads over the documents of a travel data set, each beside the bare C loop that moves the same bytes.
///
///     insert-batch    all documents in one transaction
///     insert-single   2,000 documents, a transaction each
///     read            100,000 documents at random, a snapshot and one property of each
///     update          every document once, in one transaction
///     scan            one property of every document, in the engine's order, 10 times over
///     sync-apply      every document as a pulled revision with a history of two, 200 a transaction
///     delete          every document, in one transaction
///     compact         after every document was updated once
///     reopen          opens the database, reads a document, closes it; 20 times
final class TravelSuite: @unchecked Sendable {
  static let name = "travel"
  static let property = "type"

  // Nothing here changes after `init`, but for `fixtures`, which has a lock.
  private let corpus: TravelCorpus
  private let replays: TravelReplay.All
  private let durability: Durability
  private let fixtures: Fixtures
  private let reads: [Int]
  private let engines: BenchmarkEngines

  init(
    _ dataset: LoadedDataset, engines: BenchmarkEngines, durability: Durability, seed: UInt64,
    workDirectory: String
  ) throws {
    corpus = TravelCorpus(dataset)
    self.durability = durability
    self.engines = engines
    fixtures = Fixtures(in: workDirectory)
    let recordings = try TrialDirectory(in: workDirectory)
    defer { recordings.remove() }
    replays = try TravelReplay.record(corpus, in: recordings.path)
    var random = SeededRandom(seed: seed)
    let count = min(100_000, dataset.count * 50)
    reads = (0..<count).map { _ in random.below(dataset.count) }
  }
}
