import Bytes
import Fleece
import Storage
import System
import TestSupport

@testable import Query

/// Rows in temporary files: their encoding, blocks, sorted runs and pages.
@Suite struct RowFileTests {
  private let keys = SharedKeys.empty

  private func keeping(memory: Int = 64 << 10) -> RowKeeping {
    RowKeeping(
      budget: QueryMemoryBudget(
        limit: 64 << 20,
        files: TemporaryFiles.Limits(directory: nil, bytes: 1 << 30, shared: nil, beginsAt: memory)),
      cancellation: QueryCancellation(), sharedKeys: keys)
  }

  private func value(_ random: inout SeededGenerator, _ arena: EvaluationArena, depth: Int = 0) -> QueryValue
  {
    func text() -> TextSlice {
      let length = [0, 1, 5, 40, 3_000][Int.random(in: 0..<5, using: &random)]
      return arena.copy(
        String(decoding: (0..<length).map { _ in UInt8.random(in: 32...126, using: &random) }, as: UTF8.self))
    }
    switch Int.random(in: 0..<(depth < 3 ? 11 : 9), using: &random) {
    case 0: return .missing
    case 1: return .null
    case 2: return .bool(Bool.random(using: &random))
    case 3: return .int(Int64.random(in: .min ... .max, using: &random))
    case 4: return .uint(UInt64.random(in: (1 << 63) ... .max, using: &random))
    case 5: return .double([0, -0.0, 1.5, -1e308, 5e-324][Int.random(in: 0..<5, using: &random)])
    case 6: return .int(Int64.random(in: 0..<5, using: &random))
    case 7: return .data(text())
    case 8: return .string(text())
    case 9:
      return arena.array(
        (0..<Int.random(in: 0..<5, using: &random)).map { _ in value(&random, arena, depth: depth + 1) })
    default:
      let count = Int.random(in: 0..<5, using: &random)
      let members = arena.allocate(count, of: ComputedObject.Member.self)
      for index in 0..<count {
        members[index] = ComputedObject.Member(
          name: arena.copy("\(Int.random(in: 0..<9, using: &random))é"),
          value: value(&random, arena, depth: depth + 1))
      }
      return arena.object(members, count)
    }
  }

  /// All bits of a value as text.
  private func shown(_ value: QueryValue) -> String {
    switch value {
    case .missing: "-"
    case .null: "null"
    case .bool(let value): "\(value)"
    case .int(let value): "i\(value)"
    case .uint(let value): "u\(value)"
    case .double(let value): "d\(value.bitPattern)"
    case .string(let text): "'\(text.string)'"
    case .data(let text): "x'\(text.string)'"
    case .array, .computedArray: "[\((0..<value.count).map { shown(value.item($0)) })]"
    case .object, .computedObject:
      "{\(value.sortedMembers(keys).map { "\($0.name.string): \(shown($0.value))" })}"
    }
  }

  @Test("rows come back bit by bit, from any place and by their numbers")
  func rows() throws {
    var random = SeededGenerator(seed: testSeed)
    let arena = EvaluationArena()
    for memory in [8 << 10, 1 << 20, 64 << 20] {
      let keeping = keeping(memory: memory)
      let (width, count) = (3, 700)
      let file = try RowFile(width: width, keeping.files, keeping.budget)
      let paged = try PagedRows(width: width, keeping)
      var texts: [[String]] = []
      var places: [Int] = []
      for number in 0..<count {
        var row = (0..<width).map { _ in value(&random, arena) }
        // Longer than many blocks.
        if number == 300 { row[1] = .string(arena.copy(String(repeating: "long", count: 300_000))) }
        texts.append(row.map(shown))
        places.append(file.end)
        try file.append(row, keys)
        try paged.append(row)
      }
      let reader = file.rows(0..<file.end)
      for text in texts {
        let row = try reader.next()
        expect(row.map { row in (0..<width).map { shown(row[$0]) } } == text, "seed \(testSeed)")
      }
      try expect(reader.next() == nil)
      for _ in 0..<50 {
        let number = Int.random(in: 0..<count, using: &random)
        let reader = file.rows(places[number]..<file.end)
        let row = try reader.next()
        // The reader owns the row.
        withExtendedLifetime(reader) {
          expect(row.map { row in (0..<width).map { shown(row[$0]) } } == texts[number])
        }
        let other = try paged.row(Int(number))
        expect((0..<width).map { shown(other[$0]) } == texts[number])
      }
    }
  }

  @Test(
    "a sorter gives all rows in order, equal ones as they came", arguments: [4 << 10, 32 << 10, 64 << 20])
  func sorter(_ memory: Int) throws {
    var random = SeededGenerator(seed: testSeed)
    let keeping = keeping(memory: memory)
    let sorter = RowSorter(width: 2, keeping, .orderBy) { compareNumbers($0[0], $1[0]) }
    let keys = (0..<6_000).map { _ in Int64.random(in: 0..<900, using: &random) }
    for (number, key) in keys.enumerated() { try sorter.add([.int(key), .int(Int64(number))]) }
    var found: [Int] = []
    _ = try sorter.sorted().forEach { row in
      if case .int(let number) = row[1] { found.append(Int(number)) }
      return true
    }
    expect(found == keys.indices.sorted { (keys[$0], $0) < (keys[$1], $1) }, "seed \(testSeed)")
    expect((keeping.budget.files?.written ?? 0) > 0, equals: memory < 64 << 20)
  }

  @Test("large rows are merged a few at once within the memory, and too large ones are refused")
  func largeRows() throws {
    // All sizes are in proportion.
    let scale = isShort ? 4 : 1
    let limit = (8 << 20) / scale
    func sort(_ bytes: Int) throws {
      let keeping = RowKeeping(
        budget: QueryMemoryBudget(
          limit: limit,
          files: TemporaryFiles.Limits(directory: nil, bytes: 1 << 30, shared: nil, beginsAt: limit / 2)),
        cancellation: QueryCancellation(), sharedKeys: keys)
      let sorter = RowSorter(width: 2, keeping, .orderBy) { compareNumbers($0[0], $1[0]) }
      let row = UnsafeMutablePointer<QueryValue>.allocate(2, repeating: .missing)
      defer { row.deallocate() }
      for number in 0..<60 {
        let arena = EvaluationArena()
        row[0] = .int(Int64(number * 37 % 60))
        row[1] = .string(arena.copy(String(repeating: "x", count: number % 3 == 0 ? 10 : bytes + number)))
        try sorter.add(row)
      }
      var found: [Int64] = []
      var most = 0
      _ = try sorter.sorted().forEach { row in
        most = max(most, keeping.budget.used)
        guard case .int(let number) = row[0], case .string(let text) = row[1] else { return false }
        found.append(number)
        // 13 is the inverse of 37 modulo 60.
        let place = Int(number) * 13 % 60
        expect(text.count, equals: place % 3 == 0 ? 10 : bytes + place)
        return true
      }
      expect(found, equals: Array(0..<60))
      expect(most <= limit, "\(most)")
    }
    for bytes in [60_000, 100_000, 400_000, 1_500_000] { try sort(bytes / scale) }
    try expect(queryCode { try sort(9_000_000 / scale) }, equals: .memoryLimit)
  }

  @Test("bytes that were never written are no values") func damaged() throws {
    var random = SeededGenerator(seed: testSeed)
    let arena = EvaluationArena()
    for _ in 0..<2_000 {
      var bytes = ByteBuffer(capacity: 64)
      RowCoding.append(value(&random, arena), to: &bytes, keys)
      var changed = Array(bytes.bytes)
      if changed.count > 1, Bool.random(using: &random) {
        changed.removeLast(Int.random(in: 1..<changed.count, using: &random))
      }
      changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(
        in: 0 ... .max, using: &random)
      // It gives a value or none, and reads nothing behind the end.
      changed.withUnsafeBytes { bytes in
        var offset = 0
        let found = RowCoding.value(bytes, at: &offset, EvaluationArena())
        expect(found == nil || offset <= bytes.count)
      }
    }
  }
}
