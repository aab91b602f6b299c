import Datasets
import Touchstone

extension SuiteContext {
  /// The directory of a database that `fill` fills once for all runs. `open` opens it in a directory.
  func filled(
    _ name: String, open: (_ directory: String) throws -> Database, fill: (Database) throws -> Void
  ) throws -> String {
    try fixtures.directory(name) { directory in
      let database = try open(directory)
      try fill(database)
      try database.close()
    }
  }
}

extension Database {
  /// Returns what `body` makes of the open database. Closes the database if `body` throws.
  func closingOnFailure<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch {
      try? close()
      throw error
    }
  }

  /// Calls `body` with each item, in order, `size` of them in a transaction.
  func inBatches<Items: RandomAccessCollection<Item>, Item>(
    of size: Int, _ items: Items, _ body: (Item) throws -> Void
  ) throws where Items.Index == Int {
    for start in stride(from: items.startIndex, to: items.endIndex, by: size) {
      try inBatch {
        for index in start..<min(start + size, items.endIndex) { try body(items[index]) }
      }
    }
  }
}

extension SeededRandom {
  /// The numbers from 0 to `count` - 1 in random order.
  mutating func order(_ count: Int) -> [Int] {
    var order = Array(0..<count)
    for index in order.indices.dropFirst() { order.swapAt(index, below(index + 1)) }
    return order
  }
}
