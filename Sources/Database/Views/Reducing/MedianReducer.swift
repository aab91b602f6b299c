import Bytes

/// The middle one of the sorted numbers, or the mean of the two in the middle. It gets all rows at once.
struct MedianReducer: Reducer {
  /// The most memory that the numbers may take, in bytes.
  var maximumBytes = 512 << 20

  var identity: String { "median 1" }
  var canRereduce: Bool { false }
  func makeReduction() -> any Reduction { MedianReduction(maximumBytes: maximumBytes) }
}

private final class MedianReduction: Reduction {
  private let maximumCount: Int
  private var numbers: [ReducedNumber] = []
  private var fault: ReductionFault?

  init(maximumBytes: Int) { maximumCount = maximumBytes / MemoryLayout<ReducedNumber>.stride }

  func reset() {
    numbers.removeAll(keepingCapacity: numbers.count < 1_000)
    fault = nil
  }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    guard fault == nil else { return }
    if row.kind == .json, let number = row.valueJSON.withUnsafeBytes({ ReducedNumber(value: $0) }) {
      guard numbers.count < maximumCount else {
        throw ViewReduceError(.tooLarge, "a median can be computed of \(maximumCount) values at most")
      }
      numbers.append(number)
      return
    }
    let documentID = row.documentID
    try row.withValue(expanding: expanding) { fault = ReductionFault(documentID: documentID, value: $0) }
  }

  func merge(_ partial: RawSpan) throws { throw ViewReduceError.damaged }

  func write(to partial: inout ByteBuffer) throws { throw ViewReduceError.damaged }

  func result(to json: inout [UInt8]) throws {
    if let fault { throw fault.error }
    guard !numbers.isEmpty else { return json.append(contentsOf: "null".utf8) }
    numbers.sort { $0.compare($1) < 0 }
    let middle = numbers[numbers.count / 2]
    guard numbers.count % 2 == 0 else { return middle.write(to: &json) }
    let other = numbers[numbers.count / 2 - 1]
    // Halves first: the sum of two doubles may be none.
    json.append(double: middle.double / 2 + other.double / 2)
  }
}
