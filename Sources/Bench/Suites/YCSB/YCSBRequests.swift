import Datasets
import Storage

/// One operation of a thread. All operations are drawn before the clock runs.
struct YCSBRequest {
  var operation: YCSBWorkload.Operation
  /// The number of the document. With the choice `latest`, it counts backwards from the last document. An
  /// insert takes the next new number instead.
  var number: Int32
  /// The number of documents in a scan.
  var length: Int32
  /// The number of the body to save; for a change, the number of the field.
  var body: Int32
}

extension YCSBRequest {
  /// Draws the operations of one thread of a run.
  static func draw(
    _ kind: YCSBWorkload, _ choice: YCSBWorkload.Choice, count: Int, documents: Int, threads: Int,
    seed: UInt64
  ) -> [YCSBRequest] {
    var random = SeededRandom(seed: seed)
    let mix = kind.mix
    let inserts = mix.operation == .insert
    // Documents inserted during the run can be chosen too.
    let expected = inserts ? documents + Int(Double(count * threads) * mix.share * 2) : documents
    let scrambled = ScrambledZipfian(expected)
    var latest = Zipfian(documents)
    // The number of documents at this point, if the other threads are equally far.
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

/// The numbers of new documents. A document may be read only after it and all earlier ones were saved.
final class YCSBInserts: Sendable {
  private struct State {
    var next: Int
    var acknowledged: Int
    /// Saved before a document with a lower number.
    var early: Set<Int> = []
  }
  private let state: Lock<State>

  /// The first `documents` numbers exist already.
  init(after documents: Int) { state = Lock(State(next: documents, acknowledged: documents)) }

  /// The number of documents up to the first gap.
  var acknowledged: Int { state.withLock { $0.acknowledged } }

  /// Returns the number of the next document to insert.
  func take() -> Int {
    state.withLock { state in
      defer { state.next += 1 }
      return state.next
    }
  }

  /// Records that the document of that number was saved.
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
