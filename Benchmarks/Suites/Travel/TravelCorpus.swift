import Datasets
import Documents

/// The documents of a travel run, ready to be saved: nothing of this is made while the clock runs.
final class TravelCorpus: @unchecked Sendable {
  // Nothing here changes after `init`.
  let dataset: LoadedDataset
  let ids: [String]
  /// The documents that single inserts save: evenly from the whole.
  let singles: [Int]
  /// Every document as sync brings it: with a revision ID and its parent's, as long as real ones.
  let pulled: [PulledRevision]

  init(_ dataset: LoadedDataset, singleInserts: Int = 2_000) {
    self.dataset = dataset
    ids = (0..<dataset.count).map { String(decoding: dataset.id($0), as: UTF8.self) }
    let count = min(singleInserts, dataset.count)
    singles = (0..<count).map { $0 * dataset.count / count }
    pulled = ids.indices.map { [ids] number in
      let digits = String(number, radix: 16)
      let suffix = String(repeating: "0", count: 39 - digits.count) + digits
      return PulledRevision(
        id: ids[number], history: ["2-a" + suffix, "1-b" + suffix],
        body: .json([UInt8](dataset.json(number))))
    }
  }
}
