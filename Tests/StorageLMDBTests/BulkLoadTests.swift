import CLMDB
import Foundation
import Storage
import TestSupport
import Testing

@testable import StorageLMDB

/// Files that are filled page by page: LMDB has to find them as it would have made them.
struct BulkLoadTests {
  let directory: TemporaryDirectory
  init() { directory = TemporaryDirectory() }

  typealias Entries = [(key: [UInt8], value: [UInt8])]
  typealias Content = [(shape: KeyspaceShape, entries: Entries)]

  private func open(
    _ path: String, _ creation: EngineOptions.Creation = .createNew, isBulkLoad: Bool = true,
    mapBytes: Int = MapSize.wanted()
  ) throws -> LMDBEngine {
    try LMDBEngine(
      path: path,
      options: EngineOptions(creation: creation, durability: .none, isBulkLoad: isBulkLoad),
      mapBytes: mapBytes)
  }

  private func make(_ shapes: [KeyspaceShape], in engine: LMDBEngine) throws -> [Keyspace] {
    try engine.write { (transaction: any WriteTransaction) -> [Keyspace] in
      try shapes.enumerated().map { try transaction.createKeyspace("k\($0.offset)", shape: $0.element) }
    }
  }

  private func append(_ entries: Entries, to keyspace: Keyspace, _ load: any BulkLoad) throws {
    for entry in entries {
      try entry.key.withUnsafeBytes { key in
        try entry.value.withUnsafeBytes { try load.append(key, $0, in: keyspace) }
      }
    }
  }

  private func load(_ content: Content, into engine: LMDBEngine) throws -> [Keyspace] {
    let keyspaces = try make(content.map(\.shape), in: engine)
    let isLoaded = try engine.bulkLoad { load in
      for (keyspace, content) in zip(keyspaces, content) { try append(content.entries, to: keyspace, load) }
    }
    #expect(isLoaded)
    return keyspaces
  }

  private func check(_ engine: LMDBEngine, _ keyspaces: [Keyspace], _ content: Content) throws {
    let faults = try engine.checkIntegrity()
    #expect(faults == [])
    try engine.read { transaction in
      for (keyspace, (_, entries)) in zip(keyspaces, content) {
        let count = try transaction.count(of: keyspace)
        #expect(count == entries.count)
        for order in [ScanOrder.ascending, .descending] {
          let expected = order == .ascending ? entries : entries.reversed()
          var index = 0
          var isEqual = true
          try transaction.scan(keyspace, .all, order: order, fetch: .entries) { key, value in
            isEqual =
              index < expected.count && key.elementsEqual(expected[index].key)
              && value.elementsEqual(expected[index].value)
            index += 1
            return isEqual
          }
          #expect(isEqual && index == entries.count, "\(keyspace) at \(index)")
        }
        for index in stride(from: 0, to: entries.count, by: max(1, entries.count / 500)) {
          let value = try transaction.bytes(entries[index].key, in: keyspace)
          #expect(value == entries[index].value)
        }
      }
    }
  }

  /// Keys in order, of these lengths and four bytes more; of sequences, numbers.
  private func entries(
    _ shape: KeyspaceShape, _ count: Int, keyBytes: ClosedRange<Int>, valueBytes: ClosedRange<Int>,
    _ random: inout SeededGenerator
  ) -> Entries {
    (0..<count).map { index in
      let value = random.bytes(Int.random(in: valueBytes, using: &random))
      if shape == .sequences { return (withUnsafeBytes(of: UInt64(index).bigEndian) { [UInt8]($0) }, value) }
      let prefix = withUnsafeBytes(of: UInt32(index).bigEndian) { [UInt8]($0) }
      return (prefix + random.bytes(Int.random(in: keyBytes, using: &random)), value)
    }
  }

  @Test("entries of all sizes are there, and the file goes on being written") func sizes() throws {
    var random = SeededGenerator(seed: testSeed)
    var content: Content = []
    for shape in KeyspaceShape.allCases {
      for (count, keyBytes, valueBytes) in [
        (0, 0...0, 0...0), (1, 0...0, 0...0), (1, 507...507, 20_000...20_000), (2, 1...3, 4_000...4_100),
        (300, 0...507, 0...12_000), (5_000, 0...30, 0...60), (2_500, 490...507, 0...2_000),
        (3_000, 100...507, 480...1_000), (600, 10...10, 2_000...2_040), (20, 1...1, 300_000...900_000),
      ] {
        content.append(
          (shape, entries(shape, count, keyBytes: keyBytes, valueBytes: valueBytes, &random)))
      }
    }
    var engine = try open(directory.file())
    let keyspaces = try load(content, into: engine)
    try check(engine, keyspaces, content)
    try engine.close()
    engine = try open(directory.file(), .openExisting, isBulkLoad: false)
    try check(engine, keyspaces, content)
    // Trees that LMDB changes from now on.
    for (place, keyspace) in keyspaces.enumerated() {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        var kept: Entries = []
        for (index, entry) in content[place].entries.enumerated() {
          if index % 3 == 1 {
            _ = try entry.key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
          } else {
            let value = index % 5 == 0 ? random.bytes(Int.random(in: 0...5_000, using: &random)) : entry.value
            if index % 5 == 0 { try transaction.put(entry.key, value, in: keyspace) }
            kept.append((entry.key, value))
          }
        }
        content[place].entries = kept
      }
    }
    try check(engine, keyspaces, content)
    let copy = directory.file("copy.mdb")
    try engine.backup(to: copy)
    try engine.close()
    engine = try open(copy, .openExisting, isBulkLoad: false)
    try check(engine, keyspaces, content)
    try engine.close()
  }

  @Test("every number of entries around a page's and a level's end") func counts() throws {
    var random = SeededGenerator(seed: testSeed)
    for count in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 60, 61, 62, 63, 64, 65, 66, 110, 111, 112] {
      let content: Content = KeyspaceShape.allCases.map {
        ($0, entries($0, count, keyBytes: 490...507, valueBytes: 1_400...1_500, &random))
      }
      let engine = try open(directory.file("\(count).mdb"))
      try check(engine, try load(content, into: engine), content)
      try engine.close()
    }
  }

  @Test("a file is loaded past what the map has room for") func smallMap() throws {
    var random = SeededGenerator(seed: testSeed)
    let content: Content = [
      (.documents, entries(.documents, 3_000, keyBytes: 1...20, valueBytes: 0...4_000, &random))
    ]
    var engine = try open(directory.file(), mapBytes: 1 << 20)
    let keyspaces = try load(content, into: engine)
    try engine.close()
    engine = try open(directory.file(), .openExisting, isBulkLoad: false, mapBytes: 1 << 20)
    try check(engine, keyspaces, content)
    try engine.close()
  }

  @Test("what is out of order is refused") func order() throws {
    let pairs: [[(Int, [UInt8])]] = [
      [(0, [2]), (0, [1])], [(0, [2]), (0, [2])], [(0, [2, 1]), (0, [2])], [(0, [1]), (1, [1]), (0, [2])],
    ]
    for (number, pairs) in pairs.enumerated() {
      let engine = try open(directory.file("\(number).mdb"))
      let keyspaces = try make([.documents, .entries], in: engine)
      let found = try code {
        _ = try engine.bulkLoad { load in
          for (place, key) in pairs { try append([(key, [7])], to: keyspaces[place], load) }
        }
      }
      #expect(found == .outOfOrder)
      try engine.close()
    }
  }

  @Test("only a new file is filled so") func others() throws {
    let engine = try open(directory.file(), isBulkLoad: false)
    let isLoaded = try engine.bulkLoad { _ in Issue.record("it was called") }
    #expect(!isLoaded)
    try engine.close()
    let filled = try open(directory.file("filled.mdb"))
    let keyspaces = try make([.documents], in: filled)
    try filled.write { try $0.put(bytes("a"), bytes("1"), in: keyspaces[0]) }
    let isFilled = try filled.bulkLoad { _ in Issue.record("it was called") }
    #expect(!isFilled)
    try filled.close()
  }

  @Test("a disk that is full is an error") func full() throws {
    let descriptor = Glibc.open("/dev/full", O_RDWR)
    defer { close(descriptor) }
    let pages = PageStream(descriptor, path: "/dev/full", following: 2)
    let found = try code { for _ in 0..<2_000 { _ = try pages.next() } }
    #expect(found == .diskFull)
  }
}
