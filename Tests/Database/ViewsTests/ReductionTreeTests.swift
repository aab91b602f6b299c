import Bytes
import Fleece
import Foundation
import Storage
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Rows of a test with their tree, beside a sorted list of the rows.
final class TreeModel {
  struct Row {
    let key: [UInt8]
    let value: [UInt8]
  }

  let engine: any StorageEngine
  let rows: LongKeyspace
  let reductions: LongKeyspace
  let tree: ReductionTree
  let encoder: ViewKeyEncoder
  /// By row key.
  private(set) var model: [Row] = []

  init(_ engine: any StorageEngine, _ reduce: ViewReduce?, blockBits: Int = 2) throws {
    self.engine = engine
    let keyspaces = try engine.write {
      (try $0.createKeyspace("rows", shape: .entries), try $0.createKeyspace("reductions", shape: .entries))
    }
    rows = LongKeyspace(keyspaces.0)
    reductions = LongKeyspace(keyspaces.1)
    tree = ReductionTree(
      rows: rows, reductions: reductions, reducer: reduce?.reducer, blockBits: blockBits,
      expanding: testExpansion)
    encoder = try ViewKeyEncoder(.ascii)
  }

  func row(_ keyJSON: String, _ documentID: String, _ valueJSON: String) throws -> Row {
    var key = ByteBuffer()
    try Array(keyJSON.utf8).withUnsafeBytes { try encoder.append(json: $0, to: &key) }
    let length = key.count
    Array(documentID.utf8).withUnsafeBytes { StoredRow.escape($0, into: &key) }
    var value = ByteBuffer()
    Array(keyJSON.utf8).withUnsafeBytes { keyJSON in
      Array(valueJSON.utf8).withUnsafeBytes { valueJSON in
        StoredRow.write(
          kind: .json, keyLength: length, sequence: 1, keyJSON: keyJSON, into: &value)
        value.append(valueJSON)
      }
    }
    return Row(key: Array(key.bytes), value: Array(value.bytes))
  }

  private func place(_ key: [UInt8]) -> (index: Int, isThere: Bool) {
    var low = 0
    var high = model.count
    while low < high {
      let middle = (low + high) / 2
      if ReductionTree.order(model[middle].key, key) < 0 { low = middle + 1 } else { high = middle }
    }
    return (low, low < model.count && model[low].key == key)
  }

  func put(_ row: Row, in transaction: any WriteTransaction) throws {
    let (index, isThere) = place(row.key)
    try rows.put(row.key.span.bytes, row.value.span.bytes, in: transaction)
    if isThere {
      let old = model[index].value
      tree.rowPut(row.key.span.bytes, old: old.span.bytes, new: row.value.span.bytes)
      model[index] = row
    } else {
      tree.rowPut(row.key.span.bytes, old: nil, new: row.value.span.bytes)
      model.insert(row, at: index)
    }
  }

  func remove(_ index: Int, in transaction: any WriteTransaction) throws {
    let row = model.remove(at: index)
    try rows.delete(row.key.span.bytes, in: transaction)
    tree.rowRemoved(row.key.span.bytes, old: row.value.span.bytes)
  }

  func rows(in range: KeyRange) -> [Row] {
    let (from, to) = range.keys
    return model.filter { row in
      if ReductionTree.order(row.key, from) < 0 { return false }
      guard let to else { return true }
      return ReductionTree.order(row.key, to) < 0
    }
  }

  /// The result over rows, reduced at once.
  func naive(_ rows: [Row]) throws -> String? {
    guard !rows.isEmpty else { return nil }
    guard let reduction = try tree.reducer?.makeReduction() else { return "" }
    for row in rows {
      try reduction.add(try StoredRow(row.key.span.bytes, row.value.span.bytes), expanding: testExpansion)
    }
    return try reduction.text
  }

  func entries() throws -> [[UInt8]: [UInt8]] {
    var found: [[UInt8]: [UInt8]] = [:]
    try engine.read { transaction in
      try reductions.scan(.all, in: transaction) { key, value in
        found[[UInt8](copying: key)] = [UInt8](copying: value)
        return true
      }
    }
    return found
  }

  /// The stored blocks of a tree that is built of the same rows.
  func rebuilt() throws -> [[UInt8]: [UInt8]] {
    let keyspace = try engine.write { try $0.createKeyspace("rebuilt", shape: .entries) }
    let other = ReductionTree(
      rows: rows, reductions: LongKeyspace(keyspace), reducer: tree.reducer, blockBits: tree.blockBits,
      expanding: testExpansion)
    try engine.write { try other.build(in: $0) }
    var found: [[UInt8]: [UInt8]] = [:]
    try engine.read { transaction in
      try other.entries.scan(.all, in: transaction) { key, value in
        found[[UInt8](copying: key)] = [UInt8](copying: value)
        return true
      }
      try expect(other.check(in: transaction), equals: [])
    }
    try engine.write { try $0.dropKeyspace(keyspace) }
    return found
  }

  /// Compares ranges and groups with the rows.
  func compare(_ random: inout SeededGenerator) throws {
    try engine.read { transaction in
      for _ in 0..<6 {
        func bound(_ random: inout SeededGenerator) -> KeyRange.Bound {
          guard let row = model.randomElement(using: &random) else { return .unbounded }
          switch Int.random(in: 0...4, using: &random) {
          case 0: return .unbounded
          case 1: return .inclusive(row.key)
          case 2: return .exclusive(row.key)
          case 3: return .inclusive(Array(row.key.prefix(2)))
          default: return .exclusive(Array(row.key.prefix(3)))
          }
        }
        let range = KeyRange(lower: bound(&random), upper: bound(&random))
        let inside = rows(in: range)
        try expect(tree.count(of: range, in: transaction), equals: inside.count)
        let reduced = try tree.reduce(range, in: transaction)
        expect(reduced?.count ?? 0, equals: inside.count)
        try expect(reduced.map { String(decoding: $0.json, as: UTF8.self) }, equals: naive(inside))
        let level = [1, 2, Int.max].randomElement(using: &random) ?? 1
        let descending = random.next() & 1 == 0
        var expected: [(prefix: [UInt8], rows: [Row])] = []
        for row in inside {
          let prefix = Array(
            row.key.prefix(ViewKeyEncoder.groupPrefix(of: row.key.span.bytes, level: level)))
          if expected.last?.prefix == prefix {
            expected[expected.count - 1].rows.append(row)
          } else {
            expected.append((prefix, [row]))
          }
        }
        if descending { expected.reverse() }
        let groups = try tree.groups(range, level: level, descending: descending, in: transaction)
        for group in expected {
          if random.next() % 4 == 0 {
            try expect(groups.skip())
            continue
          }
          let found = try #require(try groups.next())
          expect(found.count, equals: group.rows.count)
          try expect(String(decoding: found.json, as: UTF8.self), equals: naive(group.rows))
          expect(
            rows(in: found.rows).filter { row in inside.contains { $0.key == row.key } }.map(\.key),
            equals: group.rows.map(\.key))
        }
        try expect(groups.next() == nil)
        try expect(!groups.skip())
      }
    }
  }
}

@Suite struct ReductionTreeTests {
  /// Every engine, and the strict ones.
  static let names = allEngines.map(\.rawValue) + ["strict-sqlite", "strict-lmdb"]

  static func withModel(
    _ name: String, _ reduce: ViewReduce?, blockBits: Int = 2, _ body: (TreeModel) throws -> Void
  ) throws {
    let isStrict = name.hasPrefix("strict-")
    let engineName = EngineName(rawValue: isStrict ? String(name.dropFirst(7)) : name)
    var type = try Engines.type(engineName)
    if isStrict { type = StrictEngine.type(over: type, name: name) }
    let engineType = type
    try withTemporaryDirectory { directory in
      let key = engineType.encrypts ? [UInt8](repeating: 7, count: 32) : nil
      let engine = try engineType.open(
        "\(directory)/main.\(engineType.fileExtension)", EngineOptions(durability: .none, key: key))
      try body(try TreeModel(engine, reduce, blockBits: blockBits))
      try engine.close()
    }
  }

  static func anyKey(_ random: inout SeededGenerator) -> String {
    switch Int.random(in: 0...9, using: &random) {
    case 0...3: "[\(Int.random(in: 0...3, using: &random)),\(Int.random(in: 0...9, using: &random))]"
    case 4, 5: "\"same\""
    case 6: "\"\(String(repeating: "long", count: 200))\(Int.random(in: 0...5, using: &random))\""
    case 7: "[\"a\"]"
    case 8: "null"
    default: "\(Int.random(in: 0...50, using: &random))"
    }
  }

  static let reducers: [ViewReduce?] =
    [
      nil, .sum, .stats, .count, .median, .max, ViewReduce.builtIn("_sum"),
      ViewReduce.builtIn("_approx_count_distinct"),
      .function(version: "1", rereduces: true) { _, values, _ in
        .int(values.reduce(0) { $0 &+ Int64($1.double ?? 0) })
      },
    ]

  @Test("random changes end in the blocks of a fresh build, and in the results of all rows", arguments: names)
  func random(engine: String) throws {
    var random = SeededGenerator(seed: testSeed)
    let rounds = (engine.hasPrefix("strict") ? 60 : 120) / (isShort ? 3 : 1)
    for reduce in Self.reducers {
      try Self.withModel(engine, reduce) { model in
        var steps = 0
        for round in 0..<rounds {
          let shrinks = round / 20 % 2 == 1
          try model.engine.write { transaction in
            for _ in 0..<Int.random(in: 1...25, using: &random) {
              steps += 1
              if Int.random(in: 0...9, using: &random) < (shrinks ? 7 : 3), !model.model.isEmpty {
                try model.remove(Int.random(in: 0..<model.model.count, using: &random), in: transaction)
              } else {
                let value =
                  reduce == nil ? "null" : String(Double(Int.random(in: -99...99, using: &random)) / 4)
                try model.put(
                  try model.row(Self.anyKey(&random), "d\(Int.random(in: 0...60, using: &random))", value),
                  in: transaction)
              }
            }
            try model.tree.finish(in: transaction)
          }
          if round % 6 == 0 {
            try expect(model.entries(), equals: model.rebuilt())
            try model.compare(&random)
          }
        }
        try model.engine.write { transaction in
          while !model.model.isEmpty { try model.remove(0, in: transaction) }
          try model.tree.finish(in: transaction)
        }
        try expect(model.entries().isEmpty)
      }
    }
  }

  @Test("equal keys by the thousand have blocks like others")
  func equalKeys() throws {
    try Self.withModel("lmdb", .sum, blockBits: 6) { model in
      try model.engine.write { transaction in
        for index in 0..<20_000 {
          try model.put(try model.row("1", "doc\(index)", "1"), in: transaction)
        }
        try model.tree.finish(in: transaction)
      }
      let entries = try model.entries()
      expect(entries.count > 200 && entries.count < 500)
      try expect(entries, equals: model.rebuilt())
      try model.engine.read { transaction in
        try expect(model.tree.reduce(in: transaction)?.json, equals: Array("20000".utf8))
        let groups = try model.tree.groups(level: 1, in: transaction)
        try expect(groups.next()?.count, equals: 20_000)
        try expect(groups.next() == nil)
      }
    }
  }

  @Test("check finds what differs from the rows")
  func check() throws {
    try Self.withModel("lmdb", .sum) { model in
      try model.engine.write { transaction in
        for index in 0..<300 { try model.put(try model.row("\(index)", "d", "\(index)"), in: transaction) }
        try model.tree.finish(in: transaction)
      }
      func faults() throws -> [String] {
        var faults: [String] = []
        try model.engine.read { faults = try model.tree.check(in: $0) }
        return faults
      }
      try expect(faults(), equals: [])
      let entries = try model.entries()
      let (key, value) = try #require(entries.first { $0.key.count > 1 })
      try model.engine.write { try model.reductions.put(key.span.bytes, (value + [1]).span.bytes, in: $0) }
      try expect(faults().count, equals: 1)
      try model.engine.write { _ = try model.reductions.delete(key.span.bytes, in: $0) }
      try expect(faults().count, equals: 1)
      try model.engine.write {
        try model.reductions.put(key.span.bytes, value.span.bytes, in: $0)
        try model.reductions.put((key + [7]).span.bytes, value.span.bytes, in: $0)
      }
      try expect(faults().count, equals: 1)
    }
  }

  @Test("the hash of row keys stays")
  func hash() {
    let hashes = ["", "a", "abcdefgh", "abcdefghi"].map { text in
      Array(text.utf8).withUnsafeBytes { ReductionTree.hash($0.bytes) }
    }
    expect(
      hashes,
      equals: [
        17_015_960_236_405_173_677, 7_763_986_875_932_777_024, 11_760_320_100_199_033_543,
        8_950_296_698_032_454_180,
      ])
  }
}
