import Bytes

//   partial   := number of rows:varint

/// Counts the rows: `count` and CouchDB's `_count`.
struct CountReducer: Reducer {
  var identity: String { "count 1" }
  var canRereduce: Bool { true }
  func makeReduction() -> any Reduction { CountReduction() }
}

private final class CountReduction: Reduction {
  private var count: UInt64 = 0

  func reset() { count = 0 }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) { count += 1 }

  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) -> Bool {
    count += 1
    return true
  }

  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) -> Bool {
    guard count > 0 else { return false }
    count -= 1
    return true
  }

  func merge(_ partial: RawSpan) throws {
    var reader = ByteReader(partial)
    guard let more = reader.varint(), reader.rest.byteCount == 0, more <= UInt64.max - count else {
      throw ViewReduceError.damaged
    }
    count += more
  }

  func write(to partial: inout ByteBuffer) { partial.append(varint: count) }

  func result(to json: inout [UInt8]) { json.append(contentsOf: String(count).utf8) }
}
