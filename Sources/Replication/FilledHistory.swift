import Bytes
import Documents

extension SyncRevision {
  /// The history with made-up IDs in the place of revisions that were pruned, so that generations are consecutive:
  /// `G-faded000` and 16 random hexadecimal digits. For peers that refuse gaps.
  package func filledHistory(
    _ random: inout some RandomNumberGenerator, atMost limit: Int = 1_000
  ) -> [String] {
    var filled: [String] = []
    for text in history {
      if let last = filled.last.flatMap({ RevisionID($0)?.generation }),
        let generation = RevisionID(text)?.generation, generation < last
      {
        var missing = last - 1
        while missing > generation, filled.count < limit {
          filled.append("\(missing)-faded000\(Hex.text(random.next() as UInt64, digits: 16))")
          missing -= 1
        }
        // A gap that is too large ends the history.
        guard missing == generation else { return filled }
      }
      filled.append(text)
    }
    return filled
  }
}
