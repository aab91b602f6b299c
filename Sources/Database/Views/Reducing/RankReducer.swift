import Bytes
import Fleece

//   partial   := ( length:varint value's JSON )*    the values in their order, at most N

/// The N highest or lowest different values, in the order of CouchDB's collation: CouchDB's `_top_N` and `_bottom_N`.
struct RankReducer: Reducer {
  /// How many values: 1 to 100.
  let count: Int
  /// Whether they are the highest ones.
  let isTop: Bool

  /// The number of values that a name says, such as `_top_5`. Nil for another name, and for a number that CouchDB doesn't take.
  init?(_ name: String) {
    guard let prefix = ["_top_", "_bottom_"].first(where: { name.hasPrefix($0) }) else { return nil }
    let digits = name.utf8.dropFirst(prefix.utf8.count)
    guard digits.allSatisfy({ $0 &- 0x30 < 10 }), let count = Int(Substring(digits)), 1...100 ~= count else {
      return nil
    }
    self.count = count
    isTop = prefix == "_top_"
  }

  var identity: String { "\(isTop ? "top" : "bottom") 1 \(count)" }
  var canRereduce: Bool { true }
  func makeReduction() throws -> any Reduction { RankReduction(self, try MangoCollation()) }
}

private final class RankReduction: Reduction {
  private struct Entry {
    let value: JSONValue
    let json: [UInt8]
  }

  private let reducer: RankReducer
  private let collation: MangoCollation
  private var entries: [Entry] = []

  init(_ reducer: RankReducer, _ collation: MangoCollation) {
    self.reducer = reducer
    self.collation = collation
  }

  func reset() { entries = [] }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    try row.withValue(expanding: expanding) { try take(Array($0)) }
  }

  func merge(_ partial: RawSpan) throws {
    var reader = ByteReader(partial)
    while reader.rest.byteCount > 0 {
      guard let length = reader.varint(), let json = reader.bytes(Int(clamping: length)) else {
        throw ViewReduceError.damaged
      }
      try take([UInt8](copying: json))
    }
  }

  /// Adds a value. Of equal ones, the first stays.
  private func take(_ json: [UInt8]) throws {
    guard let value = try? json.withUnsafeBytes({ try JSONValue(json: $0) }) else {
      throw ViewReduceError.damaged
    }
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      var order = collation.compare(value, entries[middle].value)
      if reducer.isTop { order = -order }
      if order == 0 { return }
      if order < 0 { high = middle } else { low = middle + 1 }
    }
    guard low < reducer.count else { return }
    entries.insert(Entry(value: value, json: json), at: low)
    if entries.count > reducer.count { entries.removeLast() }
  }

  func write(to partial: inout ByteBuffer) {
    for entry in entries {
      partial.append(varint: UInt64(entry.json.count))
      entry.json.withUnsafeBytes { partial.append($0) }
    }
  }

  func result(to json: inout [UInt8]) {
    json.append(UInt8(ascii: "["))
    for (index, entry) in entries.enumerated() {
      if index > 0 { json.append(UInt8(ascii: ",")) }
      json += entry.json
    }
    json.append(UInt8(ascii: "]"))
  }
}
