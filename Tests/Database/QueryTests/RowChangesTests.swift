import Fleece
import StorageConformance
import TestSupport
import Testing

@testable import Query
@testable import Touchstone

/// The differences of two results.
@Suite("Differences of rows") struct RowChangesTests {
  private let database: Database
  private let directory = TemporaryDirectory()
  private let query: Query

  init() throws {
    database = try Database.open("test", in: directory.path)
    query = try database.query("SELECT r.id AS id, r.v AS v FROM _ UNNEST $rows AS r")
    try database.save("one", [:])
  }

  /// Results with these rows. A nil key is missing.
  private func results(_ rows: [(key: JSONValue?, value: Int)]) throws -> QueryResults {
    let items = rows.map { row in
      var members: JSONObject = ["v": .int(Int64(row.value))]
      members["id"] = row.key
      return JSONValue.object(members)
    }
    return try query.run(["rows": .array(items)])
  }

  private func lines(_ rows: some Sequence<QueryRow>) throws -> [String] { try rows.map { try $0.json() } }

  /// Applies the differences in the documented order, and checks what holds for all of them.
  private func check(_ changes: RowChanges, from old: QueryResults, to new: QueryResults, _ comment: Comment)
    throws
  {
    let wanted = try lines(new)
    var list = try lines(old)
    expect(changes.oldCount, equals: old.count, comment)
    expect(
      changes.removed == changes.removed.sorted() && changes.inserted == changes.inserted.sorted(), comment)
    for index in (changes.removed + changes.moved.map(\.old)).sorted(by: >) { list.remove(at: index) }
    for index in (changes.inserted + changes.moved.map(\.new)).sorted() {
      // A moved row is inserted as it was.
      let source = changes.moved.first { $0.new == index }
      list.insert(try source.map { try old[$0.old].json() } ?? wanted[index], at: index)
    }
    for pair in changes.updated {
      try expect(list[pair.new] == old[pair.old].json() && list[pair.new] != wanted[pair.new], comment)
      list[pair.new] = wanted[pair.new]
    }
    expect(list, equals: wanted, comment)
    var applied = try lines(old)
    try changes.apply(to: &applied) { try $0.json() }
    expect(applied, equals: wanted, comment)
    expect(changes.isEmpty, equals: (old == new), comment)
  }

  /// The length of a longest increasing subsequence, in the simple way.
  private func longest(_ numbers: [Int]) -> Int {
    var lengths: [Int] = []
    for (index, number) in numbers.enumerated() {
      lengths.append(1 + (0..<index).filter { numbers[$0] < number }.map { lengths[$0] }.reduce(0, max))
    }
    return lengths.max() ?? 0
  }

  @Test("applied in order they turn any list into any other, with the fewest moves") func randomLists() throws
  {
    let seed = testSeed
    var random = SeededGenerator(seed: seed)
    for round in 0..<(isLong ? 20_000 : 1_000) {
      let keyCount = Int.random(in: 1...(round % 3 == 0 ? 4 : 30), using: &random)
      func list() -> [(key: JSONValue?, value: Int)] {
        var keys = Array(0..<keyCount)
        // Often each key is there at most once, and sometimes in the order of its number.
        if round % 2 == 0 { keys += keys.filter { _ in Bool.random(using: &random) } }
        if round % 5 != 0 { keys.shuffle(using: &random) }
        return keys.filter { _ in Int.random(in: 0..<4, using: &random) > 0 }.map { key in
          let value = Int.random(in: 0..<3, using: &random)
          switch key {
          case 0 where round % 4 == 0: return (nil, value)
          case 1 where round % 4 == 0: return (.null, value)
          case 2: return (.double(2.5), value)
          case 3: return ("three", value)
          case 4: return (["array", 4], value)
          default: return (.int(Int64(key)), value)
          }
        }
      }
      let (old, new) = (try results(list()), try results(list()))
      let comment: Comment = "round \(round), TOUCHSTONE_SEED=\(seed)"
      let changes = RowChanges(from: old, to: new, key: 0)
      try check(changes, from: old, to: new, comment)
      // The old indices of the rows that stay, by a slow way: the n-th row of a key with the n-th one.
      var taken: Set<Int> = []
      var stay: [Int] = []
      for row in new {
        let partner = old.indices.first { index in
          let (left, right) = (old[index]["id"], row["id"])
          let equal =
            left.exists == right.exists
            && (left.double.map { $0 == right.double }
              ?? ((try? left.jsonValue()) == (try? right.jsonValue())))
          return equal && !taken.contains(index)
        }
        guard let partner else { continue }
        taken.insert(partner)
        stay.append(partner)
      }
      expect(changes.removed, equals: old.indices.filter { !taken.contains($0) }, comment)
      expect(changes.inserted.count, equals: new.count - stay.count, comment)
      expect(changes.moved.count, equals: stay.count - longest(stay), comment)
    }
  }

  @Test("a row that moves among others is the only one that moves") func fewestMoves() throws {
    let old = try results((0..<10).map { (.int(Int64($0)), 0) })
    let order = [1, 2, 3, 4, 5, 6, 7, 8, 0, 9]
    let new = try results(order.map { (.int(Int64($0)), $0 == 0 ? 1 : 0) })
    let changes = RowChanges(from: old, to: new, key: 0)
    expect(changes.moved, equals: [RowChanges.IndexPair(old: 0, new: 8)])
    expect(changes.updated, equals: [RowChanges.IndexPair(old: 0, new: 8)])
    expect(changes.removed == [] && changes.inserted == [])
    try check(changes, from: old, to: new, "")
  }

  @Test("keys and values are compared as by =") func equality() throws {
    let old = try results([(.int(1), 0), ("\u{e9}", 0)])
    let new = try results([(.double(1), 0), ("e\u{301}", 0)])
    let changes = RowChanges(from: old, to: new, key: 0)
    expect(changes.removed == [1] && changes.inserted == [1])
    expect(changes.moved == [] && changes.updated == [])
  }

  @Test("at first all rows are inserted") func first() throws {
    let rows = try results([("a", 1), ("b", 2)])
    let changes = RowChanges(from: nil, to: rows, key: 0)
    expect(changes.inserted == [0, 1] && changes.oldCount == 0 && !changes.isEmpty)
    var items: [String] = []
    changes.apply(to: &items) { $0["id"].string ?? "-" }
    expect(items, equals: ["a", "b"])
    // A list that isn't that of the last rows is made again.
    items = ["x"]
    changes.apply(to: &items) { $0["id"].string ?? "-" }
    expect(items, equals: ["a", "b"])
    expect(RowChanges(from: rows, to: rows, key: 0).isEmpty)
  }

  @Test("a closure that throws leaves the list as it was") func throwing() throws {
    let changes = RowChanges(
      from: try results([("a", 1)]), to: try results([("a", 2), ("b", 2)]), key: 0)
    var items = ["a"]
    #expect(throws: QueryError.self) {
      try changes.apply(to: &items) { row in
        if row["id"].string == "b" { throw QueryError(.evaluation, "no") }
        return "new"
      }
    }
    expect(items, equals: ["a"])
  }

  @Test("large lists take the time of a sort") func largeLists() throws {
    var random = SeededGenerator(seed: testSeed)
    let keys = Array(0..<50_000)
    let old = try results(keys.map { (.int(Int64($0)), 0) })
    let new = try results(keys.shuffled(using: &random).map { (.int(Int64($0)), 0) })
    let changes = RowChanges(from: old, to: new, key: 0)
    expect(changes.moved.count > 49_000 && changes.updated.isEmpty)
    var list = try lines(old)
    try changes.apply(to: &list) { try $0.json() }
    try expect(list, equals: (try lines(new)))
  }
}
