import Foundation
import Storage
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#endif

@testable import StorageSQLite

/// Files that are filled page by page: the library has to find them as it would have made them.
struct BulkLoadTests {
  let directory: TemporaryDirectory
  init() { directory = TemporaryDirectory() }

  typealias Entries = [(key: [UInt8], value: [UInt8])]

  private func open(
    _ kind: Kind, _ path: String, _ creation: EngineOptions.Creation = .createNew, isBulkLoad: Bool = true
  ) throws -> SQLiteEngine {
    let options = EngineOptions(
      creation: creation, durability: .none, key: kind.type.encrypts ? Kind.key : nil, isBulkLoad: isBulkLoad)
    return try #require(try kind.type.open(path, options) as? SQLiteEngine)
  }

  private func make(_ shapes: [KeyspaceShape], in engine: SQLiteEngine) throws -> [Keyspace] {
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

  private func load(_ content: [(KeyspaceShape, Entries)], into engine: SQLiteEngine) throws -> [Keyspace] {
    let keyspaces = try make(content.map(\.0), in: engine)
    let isLoaded = try engine.bulkLoad { load in
      for (keyspace, content) in zip(keyspaces, content) { try append(content.1, to: keyspace, load) }
    }
    #expect(isLoaded)
    return keyspaces
  }

  private func check(_ engine: SQLiteEngine, _ keyspaces: [Keyspace], _ content: [(KeyspaceShape, Entries)])
    throws
  {
    let faults = try engine.checkIntegrity()
    #expect(faults == [])
    try engine.read { transaction in
      for (keyspace, (_, entries)) in zip(keyspaces, content) {
        let count = try transaction.count(of: keyspace)
        #expect(count == entries.count)
        for order in [ScanOrder.ascending, .stored] {
          var index = 0
          var isEqual = true
          try transaction.scan(keyspace, .all, order: order, fetch: .entries) { key, value in
            isEqual =
              index < entries.count && key.elementsEqual(entries[index].key)
              && value.elementsEqual(entries[index].value)
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

  /// Keys in order: of all lengths, or numbers with gaps.
  private func entries(
    _ shape: KeyspaceShape, _ count: Int, keyBytes: ClosedRange<Int>, valueBytes: ClosedRange<Int>,
    _ random: inout SeededGenerator
  ) -> Entries {
    var number = UInt64.random(in: 0...1, using: &random)
    return (0..<count).map { index in
      let value = random.bytes(Int.random(in: valueBytes, using: &random))
      if shape == .sequences {
        defer {
          number += UInt64.random(
            in: 1...UInt64(1) << UInt64.random(in: 0...40, using: &random), using: &random)
        }
        return (withUnsafeBytes(of: number.bigEndian) { [UInt8]($0) }, value)
      }
      let prefix = withUnsafeBytes(of: UInt32(index).bigEndian) { [UInt8]($0) }
      return (prefix + random.bytes(Int.random(in: keyBytes, using: &random)), value)
    }
  }

  @Test("entries of all sizes are there, and the file goes on being written", arguments: Kind.all)
  func sizes(_ kind: Kind) throws {
    var random = SeededGenerator(seed: testSeed)
    var content: [(KeyspaceShape, Entries)] = []
    for shape in KeyspaceShape.allCases {
      for (count, keyBytes, valueBytes) in [
        (0, 0...0, 0...0), (1, 0...0, 0...0), (1, 507...507, 20_000...20_000), (2, 1...3, 4_000...4_100),
        (300, 0...507, 0...12_000), (5_000, 0...30, 0...60), (2_500, 490...507, 0...2_000),
        (3_000, 100...507, 480...1_000),
      ] {
        content.append(
          (shape, entries(shape, count, keyBytes: keyBytes, valueBytes: valueBytes, &random)))
      }
    }
    let path = directory.file("a")
    var engine = try open(kind, path)
    let keyspaces = try load(content, into: engine)
    try check(engine, keyspaces, content)
    try engine.close()
    engine = try open(kind, path, .openExisting, isBulkLoad: false)
    try check(engine, keyspaces, content)
    // Trees that the library changes from now on.
    for (place, keyspace) in keyspaces.enumerated() {
      try engine.write { (transaction: any WriteTransaction) throws -> Void in
        var kept: Entries = []
        for (index, entry) in content[place].1.enumerated() {
          if index % 3 == 1 {
            _ = try entry.key.withUnsafeBytes { try transaction.delete($0, in: keyspace) }
          } else {
            let value = index % 5 == 0 ? random.bytes(Int.random(in: 0...5_000, using: &random)) : entry.value
            if index % 5 == 0 { try transaction.put(entry.key, value, in: keyspace) }
            kept.append((entry.key, value))
          }
        }
        if keyspace.shape != .sequences {
          kept.append(([255, 255, 255, 255, 1], [1, 2, 3]))
          try transaction.put([255, 255, 255, 255, 1], [1, 2, 3], in: keyspace)
        }
        content[place].1 = kept
      }
    }
    let faults = try engine.checkIntegrity()
    #expect(faults == [])
    try engine.read { transaction in
      for (keyspace, (_, entries)) in zip(keyspaces, content) {
        let count = try transaction.count(of: keyspace)
        #expect(count == entries.count)
        for entry in entries {
          let value = try transaction.bytes(entry.key, in: keyspace)
          #expect(value == entry.value)
        }
      }
    }
    try engine.close()
  }

  @Test("every number of entries around a page's and a level's end", arguments: Kind.all)
  func counts(_ kind: Kind) throws {
    var random = SeededGenerator(seed: testSeed)
    for count in [3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 60, 61, 62, 63, 64, 65, 66, 130, 131] {
      let content = KeyspaceShape.allCases.map {
        ($0, entries($0, count, keyBytes: 480...507, valueBytes: 440...480, &random))
      }
      let engine = try open(kind, directory.file("\(count)"))
      try check(engine, try load(content, into: engine), content)
      try engine.close()
    }
  }

  @Test("what is out of order is refused", arguments: Kind.all) func order(_ kind: Kind) throws {
    let pairs: [[(Int, [UInt8])]] = [
      [(0, [2]), (0, [1])], [(0, [2]), (0, [2])], [(0, [2, 1]), (0, [2])], [(0, [1]), (1, [1]), (0, [2])],
    ]
    for (number, pairs) in pairs.enumerated() {
      let engine = try open(kind, directory.file("\(number)"))
      let keyspaces = try make([.documents, .entries], in: engine)
      let code = errorCode {
        _ = try engine.bulkLoad { load in
          for (place, key) in pairs { try append([(key, [7])], to: keyspaces[place], load) }
        }
      }
      #expect(code == .outOfOrder)
      try? engine.close()
    }
  }

  @Test("only a new file is filled so", arguments: Kind.all) func others(_ kind: Kind) throws {
    let engine = try open(kind, directory.file("a"), isBulkLoad: false)
    try engine.fill(count: 3, bytes: 10)
    let isLoaded = try engine.bulkLoad { _ in Issue.record("it was called") }
    #expect(!isLoaded)
    try engine.close()
  }

  @Test("a disk that is full is an error, and nothing waits") func full() throws {
    let descriptor = Glibc.open("/dev/full", O_RDWR)
    defer { close(descriptor) }
    let pages = PageWriter(descriptor, path: "/dev/full", keys: nil, pages: 1)
    let code = errorCode {
      for _ in 0..<2_000 { _ = try pages.next() }
      try pages.finish()
    }
    #expect(code == .diskFull)
    let again = errorCode { try pages.finish() }
    #expect(again == .diskFull)
  }

  @Test("the page where SQLite locks stays empty") func lockPage() throws {
    let path = directory.file("sparse")
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT, 0o644)
    defer { close(descriptor) }
    let pages = PageWriter(descriptor, path: path, keys: nil, pages: 262_140)
    var numbers: [UInt32] = []
    for _ in 0..<8 {
      let following = pages.following
      let (page, number) = try pages.next()
      page.initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: number), count: 4_096)
      #expect(number == following)
      numbers.append(number)
    }
    try pages.finish()
    #expect(numbers == [262_141, 262_142, 262_143, 262_144, 262_146, 262_147, 262_148, 262_149])
    var byte: UInt8 = 0
    for number in 262_141...262_149 {
      #expect(pread(descriptor, &byte, 1, (number - 1) * 4_096) == 1)
      #expect(byte == (number == 262_145 ? 0 : UInt8(truncatingIfNeeded: number)))
    }
  }

  @Test("a file of more than a gigabyte", .enabled(if: isLong), arguments: Kind.all) func large(_ kind: Kind)
    throws
  {
    let value = [UInt8](repeating: 7, count: 1_000_000)
    let content = [(KeyspaceShape.documents, (0..<1_100).map { (Array("key \(100_000 + $0)".utf8), value) })]
    let engine = try open(kind, directory.file("a"))
    try check(engine, try load(content, into: engine), content)
    try engine.close()
  }
}
