// One writer and reader of documents that are registers (`RegisterHistory`).

import Documents
import Storage
import StorageConformance
import Touchstone

/// Reads and writes registers at random and notes what happened.
package struct RegisterClient {
  private let database: Database
  private let ids: [String]
  private var generator: SeededGenerator
  private var nextValue: Int
  /// What happened, for each register.
  package private(set) var histories: [RegisterHistory]

  /// `number` tells the clients of all processes apart.
  package init(_ database: Database, _ ids: [String], number: Int, seed: UInt64) {
    self.database = database
    self.ids = ids
    generator = SeededGenerator(seed: seed &+ UInt64(number))
    nextValue = number * 1_000_000 + 1
    histories = ids.map { _ in RegisterHistory() }
  }

  /// Does `count` things. A failed commit is no operation: it has done nothing.
  package mutating func run(_ count: Int, mayFail: Bool = false) throws {
    for _ in 0..<count {
      do { try runOnce() } catch let error as StorageError where mayFail && error.code == .ioError {}
    }
  }

  private mutating func runOnce() throws {
    let place = generator.below(ids.count)
    let (database, id) = (database, ids[place])
    let value = nextValue
    nextValue += 1
    func number(_ document: Document?) -> Int { document?["n"].int.map { Int($0) } ?? 0 }
    switch generator.below(8) {
    case 0: try histories[place].note { .read(number(try database.document(id))) }
    case 1...2:
      try histories[place].note {
        var base = 0
        try database.update(id) {
          base = $0["n"].int.map { Int($0) } ?? 0
          $0["n"] = .int(Int64(value))
        }
        return .wrote(value, on: base)
      }
    case 3:
      // In a batch that others may share a commit with.
      try histories[place].note {
        var base = 0
        try database.inBatch {
          base = number(try database.document(id))
          try database.save(id, ["n": .int(Int64(value))])
        }
        return .wrote(value, on: base)
      }
    default:
      var found: Document?
      try histories[place].note {
        found = try database.document(id)
        return .read(number(found))
      }
      guard let found else { return }
      var mutable = try found.toMutable()
      mutable["n"] = .int(Int64(value))
      try histories[place].note {
        do {
          try database.save(&mutable, onConflict: .fail)
          return .wrote(value, on: number(found))
        } catch let error as DocumentError where error.code == .conflict {
          return .refused(on: number(found))
        }
      }
    }
  }
}
