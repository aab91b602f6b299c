// Properties of random values, and of bytes that were damaged at random.

import Fleece
import TestTools

@Suite struct RoundTripTests {
  @Test(arguments: [11, 12, 13, 14] as [UInt64]) func randomValuesComeBackEqual(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let encoder = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    for round in 0..<800 {
      let value = randomValue(&random)
      try encoder.encode(value, keys: keys)
      let encoded = result(of: encoder)
      let table = keys.snapshot()
      expect(encoded.sharedKeyCount <= table.count)
      try check(encoded.fleece, keys: encoded.sharedKeyCount)
      let back = try decode(encoded.fleece, table)
      try #require(back == value, "seed \(seed), round \(round): \(value) came back as \(back)")
      try expect(text(of: encoded.fleece, table), equals: encoded.json, "seed \(seed), round \(round)")
    }
  }

  @Test(arguments: [21, 22, 23] as [UInt64]) func canonicalFormIsTheSameHoweverTheValueCame(seed: UInt64)
    throws
  {
    var random = SeededGenerator(seed: seed)
    let encoder = BodyEncoder()
    for round in 0..<500 {
      let value = randomValue(&random, withData: false)
      let keys = SharedKeysBuilder(.empty)
      try encoder.encode(value, keys: keys)
      let expected = result(of: encoder)
      for _ in 0..<3 {
        let shuffled = try shuffledText(value, &random)
        let again = SharedKeysBuilder(.empty)
        try Array(shuffled.utf8).withUnsafeBytes { try encoder.encode(json: $0, keys: again) }
        try #require(result(of: encoder) == expected, "seed \(seed), round \(round): \(shuffled)")
        expect(again.count, equals: keys.count)
        try expect(JSONValue(json: shuffled), equals: value, "seed \(seed), round \(round)")
      }
    }
  }

  @Test(arguments: [41, 42] as [UInt64]) func bodiesAreTheSameWithoutTheirText(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let encoder = BodyEncoder()
    let (keys, keysAgain) = (SharedKeysBuilder(.empty), SharedKeysBuilder(.empty))
    func checkSame(_ value: JSONValue, _ encode: (SharedKeysBuilder, Bool) throws -> Void) throws {
      try encode(keys, true)
      let (fleece, count) = (Array(encoder.fleece), encoder.sharedKeyCount)
      let (isObject, underscored) = (encoder.isObject, encoder.underscoredName)
      try encode(keysAgain, false)
      expect(Array(encoder.fleece), equals: fleece, "\(value)")
      expect(encoder.sharedKeyCount == count && keysAgain.count == keys.count)
      expect(encoder.isObject == isObject && encoder.underscoredName == underscored)
    }
    for _ in 0..<500 {
      let value = randomValue(&random)
      try checkSame(value) { try encoder.encode(value, keys: $0, withCanonicalJSON: $1) }
      let text = try Array(value.canonicalJSON().utf8)
      try checkSame(value) { keys, withText in
        try text.withUnsafeBytes { try encoder.encode(json: $0, keys: keys, withCanonicalJSON: withText) }
      }
    }
    // What is refused is refused, and a text is there again after a body without.
    #expect(throws: FleeceError.notFinite) {
      try encoder.encode(.double(.infinity), keys: keys, withCanonicalJSON: false)
    }
    try encoder.encode(["a": 1], keys: keys)
    expect(String(decoding: encoder.canonicalJSON, as: UTF8.self), equals: #"{"a":1}"#)
  }

  @Test(arguments: [31, 32, 33, 34] as [UInt64]) func damagedBytesAreReadWithoutHarm(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = SharedKeysBuilder(.empty)
    for _ in 0..<60 {
      let bytes = try encode(randomValue(&random), keys).fleece
      let table = keys.snapshot()
      for _ in 0..<100 {
        var damaged = bytes
        for _ in 0...Int.random(in: 0...3, using: &random) where !damaged.isEmpty {
          let index = Int.random(in: 0..<damaged.count, using: &random)
          switch Int.random(in: 0..<5, using: &random) {
          case 0: damaged[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
          case 1: damaged[index] = UInt8.random(in: 0...255, using: &random)
          case 2: damaged.removeSubrange(index..<min(index + 2, damaged.count))
          case 3: damaged.insert(contentsOf: damaged[index..<min(index + 4, damaged.count)], at: index)
          default: damaged[damaged.count - 1] ^= UInt8.random(in: 0...255, using: &random)
          }
        }
        touchEverything(damaged, table)
        // What validation lets through has a JSON form.
        if (try? check(damaged, keys: table.count)) != nil {
          do {
            _ = try text(of: damaged, table)
          } catch FleeceError.tooLarge {
          } catch {
            Issue.record("seed \(seed): valid, but \(error): \(hexText(damaged))")
          }
        }
      }
    }
  }

  @Test func randomBytesAreReadWithoutHarm() {
    var random = SeededGenerator(seed: 41)
    for _ in 0..<20_000 {
      let count = Int.random(in: 0...40, using: &random)
      var bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
      // Half of them with a root that leads somewhere.
      if count >= 4, Bool.random(using: &random) {
        bytes[count - 2] = 0x80
        bytes[count - 1] = UInt8.random(in: 1...UInt8(count / 2), using: &random)
      }
      touchEverything(bytes, .empty)
    }
  }

  @Test func damagedTextNeverHarms() throws {
    var random = SeededGenerator(seed: 51)
    let encoder = BodyEncoder()
    for _ in 0..<5_000 {
      var text = Array(try shuffledText(randomValue(&random, depth: 2, withData: false), &random).utf8)
      for _ in 0..<3 where !text.isEmpty {
        text[Int.random(in: 0..<text.count, using: &random)] =
          Array(#"{}[]",:\u09-.eE"#.utf8 + [0, 10, 128, 255]).randomElement(using: &random) ?? 0
      }
      let keys = SharedKeysBuilder(.empty)
      do {
        try text.withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
        try check(result(of: encoder).fleece, keys: keys.count)
      } catch FleeceError.invalidJSON(let reason, let offset) {
        expect(offset != nil, "\(reason) in \(String(decoding: text, as: UTF8.self).debugDescription)")
      }
    }
  }
}
