// From one table of shared keys to another.

import Fleece
import TestTools

@Suite struct TranscodingTests {
  /// A table with other names first, so that nothing has its old number.
  private func otherKeys(_ random: inout SeededGenerator) throws -> SharedKeysBuilder {
    let count = Int.random(in: 0...40, using: &random)
    return SharedKeysBuilder(try SharedKeys(keys: (0..<count).map { "other\($0)" }))
  }

  @Test(arguments: [41, 42, 43] as [UInt64]) func randomValuesAreTheSameByTheOtherTable(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let encoder = BodyEncoder()
    let target = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    let others = try otherKeys(&random)
    for round in 0..<500 {
      let value = randomValue(&random)
      try encoder.encode(value, keys: keys)
      let bytes = Array(encoder.fleece)
      let table = keys.snapshot()
      try bytes.withUnsafeBytes { bytes in
        let root = try #require(FleeceReader.root(of: bytes))
        try target.transcode(root, sharedKeys: table, keys: others)
      }
      let result = Array(target.fleece)
      try check(result, keys: others.count)
      expect(target.sharedKeyCount <= others.count)
      let back = try decode(result, others.snapshot())
      try #require(back == value, "seed \(seed), round \(round): \(value) came back as \(back)")
    }
  }

  @Test(arguments: [51, 52, 53] as [UInt64]) func damagedBytesGiveAnErrorOrAValidBody(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = SharedKeysBuilder(.empty)
    let target = BodyEncoder()
    for round in 0..<60 {
      let bytes = try encode(randomValue(&random), keys).fleece
      let table = keys.snapshot()
      for _ in 0..<100 {
        var damaged = bytes
        for _ in 0...Int.random(in: 0...3, using: &random) where !damaged.isEmpty {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        }
        let others = SharedKeysBuilder(try SharedKeys(keys: ["a", "zz"]))
        let isDone = damaged.withUnsafeBytes { bytes -> Bool in
          guard let root = FleeceReader.root(of: bytes) else { return false }
          return (try? target.transcode(root, sharedKeys: table, keys: others)) != nil
        }
        guard isDone else { continue }
        let result = Array(target.fleece)
        #expect(throws: Never.self, "seed \(seed), round \(round)") { try check(result, keys: others.count) }
      }
    }
  }

  @Test func whatIsOutOfOrderTwiceOrUndefinedIsPutRight() throws {
    let encoder = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    let source = try SharedKeys(keys: ["a", "b"])
    func transcode(_ bytes: [UInt8]) throws -> JSONValue {
      try bytes.withUnsafeBytes { bytes in
        try encoder.transcode(try #require(FleeceReader.root(of: bytes)), sharedKeys: source, keys: keys)
      }
      let result = Array(encoder.fleece)
      try check(result, keys: keys.count)
      return try decode(result, keys.snapshot())
    }
    // "z" before "a", both as strings; the name "a" is in the table.
    try expect(transcode(hex("7002 417A 0001 4161 0002 8005")), equals: ["a": 2, "z": 1])
    // The number 0 and the string "a": the number comes first.
    try expect(transcode(hex("7002 0000 0001 4161 0002 8005")), equals: ["a": 1])
    try expect(transcode(hex("7002 0000 3C00 0001 0002 8005")), equals: ["b": 2])
    try expect(transcode(hex("7001 0000 3C00 8003")), equals: [:])
    #expect(throws: FleeceError.self) { try transcode(hex("7001 0002 0001 8003")) }
    #expect(throws: FleeceError.self) { try transcode(hex("7001 0800 0001 8003")) }
  }

  @Test func aTableIsAdoptedWhenItBeginsAsOnesOwn() throws {
    let table = try SharedKeys(keys: ["a", "b", "c"])
    let empty = SharedKeysBuilder(.empty)
    expect(empty.adopt(table) && empty.snapshot().count == 3 && empty.snapshot().number(of: "c") == 2)
    let prefix = SharedKeysBuilder(try SharedKeys(keys: ["a"]))
    expect(prefix.adopt(table) && prefix.snapshot().number(of: "b") == 1)
    let longer = SharedKeysBuilder(try SharedKeys(keys: ["a", "b", "c", "d"]))
    expect(longer.adopt(table) && longer.count == 4)
    let other = SharedKeysBuilder(try SharedKeys(keys: ["b"]))
    expect(!other.adopt(table) && other.count == 1)
  }

  @Test func whatARollBackRemovesIsAdoptedAgain() throws {
    let table = try SharedKeys(keys: ["a", "b"])
    let keys = SharedKeysBuilder(.empty)
    expect(keys.adopt(table) && keys.adopt(table) && keys.count == 2)
    keys.rollBack(to: 0)
    try BodyEncoder().encode(["b": 1], keys: keys)
    expect(!keys.adopt(table) && !keys.adopt(table) && keys.count == 1)
    keys.rollBack(to: 0)
    expect(keys.adopt(table) && keys.snapshot().number(of: "b") == 1)
  }

  @Test func aCopiedBodyIsCheckedAndKeepsItsBytes() throws {
    let encoder = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    try encoder.encode(["a": ["b": 1.5], "long": .string(String(repeating: "x", count: 40))], keys: keys)
    let body = Array(encoder.fleece)
    try body.withUnsafeBytes { try encoder.copy($0, sharedKeyCount: 3) }
    expect(Array(encoder.fleece) == body && encoder.sharedKeyCount == 3)
    for position in body.indices {
      for bit in 0..<8 {
        var damaged = body
        damaged[position] ^= 1 << bit
        do { try damaged.withUnsafeBytes { try encoder.copy($0, sharedKeyCount: 3) } } catch {
          expect(encoder.fleece.isEmpty)
          continue
        }
        try check(damaged, keys: 3)
      }
    }
    #expect(throws: FleeceError.self) { try body.withUnsafeBytes { try encoder.copy($0, sharedKeyCount: 2) } }
  }
}
