import Datasets
import Storage

/// What a thread is to do, one operation after the other: drawn before the clock runs.
struct YCSBRequest {
  var operation: YCSBWorkload.Operation
  /// The document; with the latest ones, how many before the last. An insert takes the next new one.
  var number: Int32
  /// Documents of a scan.
  var length: Int32
  /// Which of the bodies is saved, and of a change, which of the fields.
  var body: Int32
}

extension YCSBRequest {
  /// The operations of one thread of a run. `inserts` is how many documents the whole run inserts at most.
  static func draw(
    _ kind: YCSBWorkload, _ choice: YCSBWorkload.Choice, count: Int, documents: Int, threads: Int,
    seed: UInt64
  ) -> [YCSBRequest] {
    var random = SeededRandom(seed: seed)
    let mix = kind.mix
    let inserts = mix.operation == .insert
    // Documents that come during the run can be chosen as well.
    let expected = inserts ? documents + Int(Double(count * threads) * mix.share * 2) : documents
    let scrambled = ScrambledZipfian(expected)
    var latest = Zipfian(documents)
    // By now, when the other threads are as far.
    var present = documents
    return (0..<count).map { _ in
      let operation = random.uniform() < mix.share ? mix.operation : mix.rest
      var number = 0
      switch choice {
      case .zipfian: repeat { number = scrambled.next(&random) } while number >= present
      case .uniform: number = random.below(present)
      case .latest: number = latest.next(&random)
      }
      let request = YCSBRequest(
        operation: operation, number: Int32(number),
        length: Int32(1 + random.below(YCSBWorkload.longestScan)),
        body: Int32(random.below(YCSBData.bodyCount)))
      if operation == .insert {
        present += threads
        latest.grow(to: present)
      }
      return request
    }
  }
}

/// The numbers of new documents, and how many have been saved with all before them: only those may be read.
final class YCSBInserts: Sendable {
  private struct State {
    var next: Int
    var acknowledged: Int
    /// Saved before one with a lower number.
    var early: Set<Int> = []
  }
  private let state: Lock<State>

  /// The first `documents` are there.
  init(after documents: Int) { state = Lock(State(next: documents, acknowledged: documents)) }

  /// Documents that are there, the lowest numbers without a gap.
  var acknowledged: Int { state.withLock { $0.acknowledged } }

  /// The number of the document to be inserted.
  func take() -> Int {
    state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
  }

  /// The document of that number was saved.
  func acknowledge(_ number: Int) {
    state.withLock { state in
      guard number == state.acknowledged else {
        state.early.insert(number)
        return
      }
      state.acknowledged += 1
      while state.early.remove(state.acknowledged) != nil { state.acknowledged += 1 }
    }
  }
}
