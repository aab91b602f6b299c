// Bodies that are encoded again with other values, without reading them into memory first.

import Bytes
import Fleece
import TestTools

@Suite struct BodyChangeTests {
  private func changed(
    _ bytes: [UInt8], _ sharedKeys: SharedKeys, _ changes: [BodyChange], _ keys: SharedKeysBuilder
  ) throws -> Encoded? {
    let encoder = BodyEncoder()
    return try bytes.withUnsafeBytes { bytes in
      let root = try #require(FleeceReader.root(of: bytes))
      guard try encoder.encode(root, sharedKeys: sharedKeys, changing: changes, keys: keys) else {
        return nil
      }
      return result(of: encoder)
    }
  }

  /// The same in memory: a property is set in an object that is there.
  private func set(_ value: inout JSONValue, _ path: ArraySlice<ByteString>, _ new: JSONValue?) {
    guard case .object(var object) = value, let name = path.first?.string else { return }
    if path.count == 1 {
      object[name] = new
    } else {
      guard var member = object[name] else { return }
      set(&member, path.dropFirst(), new)
      object[name] = member
    }
    value = .object(object)
  }

  private func randomPath(_ value: JSONValue, _ random: inout SeededGenerator) -> [ByteString] {
    var path: [ByteString] = []
    var place = value
    repeat {
      let names = place.object?.map(\.key) ?? []
      let name =
        Int.random(in: 0..<4, using: &random) == 0
        ? randomName(&random) : names.randomElement(using: &random) ?? "new"
      path.append(ByteString(name))
      place = place.object?[name] ?? .null
    } while Bool.random(using: &random)
    return path
  }

  @Test(arguments: [61, 62, 63] as [UInt64]) func theResultIsThatOfTheChangedValue(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = SharedKeysBuilder(.empty)
    var taken = 0
    for round in 0..<1_000 {
      var value = randomValue(&random)
      if value.object == nil { value = ["a": value, "b": .object(["c": randomValue(&random)])] }
      let bytes = try encode(value, keys).fleece
      var changes: [BodyChange] = []
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let path = randomPath(value, &random)
        guard !changes.contains(where: { $0.path.starts(with: path) || path.starts(with: $0.path) }) else {
          continue
        }
        changes.append(
          BodyChange(path, Int.random(in: 0..<3, using: &random) == 0 ? nil : randomValue(&random)))
      }
      for change in changes { set(&value, change.path[...], change.value) }
      guard let found = try changed(bytes, keys.snapshot(), changes, keys) else { continue }
      taken += 1
      let wanted = try encode(value, keys)
      try #require(found == wanted, "seed \(seed), round \(round): \(value)")
    }
    expect(taken, equals: 1_000)
  }

  @Test(arguments: [71, 72] as [UInt64]) func damagedBytesGiveNothingOrAValidBody(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let keys = SharedKeysBuilder(.empty)
    for round in 0..<60 {
      let value: JSONValue = .object(["a": randomValue(&random), "b": randomValue(&random), "long name": 1])
      let bytes = try encode(value, keys).fleece
      let table = keys.snapshot()
      for _ in 0..<100 {
        var damaged = bytes
        for _ in 0...Int.random(in: 0...3, using: &random) where !damaged.isEmpty {
          damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8.random(
            in: 0...255, using: &random)
        }
        guard damaged.withUnsafeBytes({ FleeceReader.root(of: $0) != nil }) else { continue }
        let others = SharedKeysBuilder(table)
        let change = BodyChange([ByteString("a")], 7)
        guard let found = try? changed(damaged, table, [change], others) else { continue }
        #expect(throws: Never.self, "seed \(seed), round \(round)") {
          try check(found.fleece, keys: others.count)
          // It is what the damaged body says.
          var read = try decode(damaged, table)
          set(&read, change.path[...], change.value)
          try expect(encode(read, SharedKeysBuilder(table)), equals: found)
        }
      }
    }
  }

  @Test func tooMuchIsRefused() throws {
    let keys = SharedKeysBuilder(.empty)
    let bytes = try encode(["a": 1], keys).fleece
    let many = (0...BodyChange.maximum).map { BodyChange([ByteString("n\($0)")], 1) }
    try expect(changed(bytes, keys.snapshot(), many, keys) == nil)
    let most = try #require(try changed(bytes, keys.snapshot(), Array(many.dropLast()), keys))
    try expect(decode(most.fleece, keys.snapshot()).object?.count, equals: BodyChange.maximum + 1)
    var deep: JSONValue = 1
    for _ in 0..<FleeceLimits.depth { deep = .array([deep]) }
    #expect(throws: FleeceError.tooDeep(limit: FleeceLimits.depth)) {
      try changed(bytes, keys.snapshot(), [BodyChange([ByteString("a")], deep)], keys)
    }
    let array = try encode([1], keys).fleece
    try expect(changed(array, keys.snapshot(), [], keys) == nil)
  }
}
