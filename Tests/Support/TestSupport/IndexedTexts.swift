// Documents with a full-text index and a value index, which several processes change.

import Documents
import StorageConformance
import Touchstone

/// Changes documents at random and compares what the indexes say with the documents.
package struct IndexedTexts {
  private static let ids = (0..<40).map { "d\($0)" }
  private static let words = (0..<24).map { "w\($0)" }
  private let database: Database
  private var generator: SeededGenerator

  package init(_ database: Database, seed: UInt64) {
    self.database = database
    generator = SeededGenerator(seed: seed)
  }

  package static func makeIndexes(_ database: Database) throws {
    try database.createFullTextIndex("text", on: ["text"])
    try database.createIndex("n", on: ["n"])
  }

  private struct Undo: Error {}

  /// Makes `count` changes, each in a transaction of its own.
  package mutating func change(_ count: Int) throws {
    for _ in 0..<count {
      switch generator.below(12) {
      case 0: try unlessGone { try $0.delete($1) }
      case 1: try unlessGone { try $0.purge($1) }
      case 2:
        try database.inBatch { for _ in 0..<4 { try save() } }
      case 3:
        do {
          try database.inBatch {
            for _ in 0..<4 { try save() }
            throw Undo()
          }
        } catch is Undo {}
      default: try save()
      }
    }
  }

  private mutating func save() throws {
    var body: JSONObject = ["n": .int(Int64(generator.below(6)))]
    let words = (0..<(1 + generator.below(12))).map { _ in Self.words[generator.below(Self.words.count)] }
    body["text"] = .string(words.joined(separator: " "))
    // Names that the other process may have given a number meanwhile.
    body["key\(generator.below(300))"] = true
    try database.save(Self.ids[generator.below(Self.ids.count)], .value(.object(body)))
  }

  private mutating func unlessGone(_ body: (Database, String) throws -> Void) throws {
    do { try body(database, Self.ids[generator.below(Self.ids.count)]) } catch let error as DocumentError
      where error.code == .notFound
    {}
  }

  /// The differences between what the indexes find and what the documents say.
  package static func faults(_ database: Database) throws -> [String] {
    var faults = try database.check(deep: true).map { "\($0)" }
    let documents = try database.documents()
    func compare(_ condition: String, _ holds: (Document) -> Bool) throws {
      let found = try database.query("SELECT META().id AS id FROM _ WHERE \(condition)").run()
        .compactMap { $0["id"].string }.sorted()
      let wanted = documents.filter(holds).map(\.id).sorted()
      if found != wanted { faults.append("\(condition): \(found), wanted \(wanted)") }
    }
    for word in words {
      try compare("MATCH(text, '\(word)')") {
        $0["text"].string?.split(separator: " ").contains(Substring(word)) ?? false
      }
    }
    for number in 0..<6 { try compare("n = \(number)") { $0["n"].int == Int64(number) } }
    return faults
  }
}
