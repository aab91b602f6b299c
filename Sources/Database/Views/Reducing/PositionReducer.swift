import Bytes

//   partial   := nothing | 01 value's JSON          nothing: there are no rows

/// The value of the first or the last row, in the order of the rows: CouchDB's `_first` and `_last`.
struct PositionReducer: Reducer {
  /// Whether it is the first row.
  let isFirst: Bool

  var identity: String { isFirst ? "first 1" : "last 1" }
  var canRereduce: Bool { true }
  func makeReduction() -> any Reduction { PositionReduction(isFirst: isFirst) }
}

private final class PositionReduction: Reduction {
  private let isFirst: Bool
  /// The JSON of the value; nil if there are no rows.
  private var value: [UInt8]?

  init(isFirst: Bool) { self.isFirst = isFirst }

  func reset() { value = nil }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    if isFirst, value != nil { return }
    try row.withValue(expanding: expanding) { value = Array($0) }
  }

  func merge(_ partial: RawSpan) throws {
    guard partial.byteCount > 0 else { return }
    var reader = ByteReader(partial)
    guard reader.byte() == 1 else { throw ViewReduceError.damaged }
    if isFirst, value != nil { return }
    value = [UInt8](copying: reader.rest)
  }

  func write(to partial: inout ByteBuffer) {
    guard let value else { return }
    partial.append(1)
    value.withUnsafeBytes { partial.append($0) }
  }

  func result(to json: inout [UInt8]) { json += value ?? Array("null".utf8) }
}
