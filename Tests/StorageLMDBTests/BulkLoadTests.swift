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

  private func open(
    _ path: String, _ creation: EngineOptions.Creation = .createNew, isBulkLoad: Bool = true,
    mapBytes: Int = MapSize.wanted()
  ) throws -> LMDBEngine {
    try LMDBEngine(
      path: path,
      options: EngineOptions(creation: creation, durability: .none, isBulkLoad: isBulkLoad),
      mapBytes: mapBytes)
  }

  /// Fills a file and looks at all of it.
  private func load(_ content: BulkLoadContent, into engine: LMDBEngine) throws -> [Keyspace] {
    let keyspaces = try #require(try content.load(into: engine))
    let faults = try content.faults(in: engine, keyspaces, [.ascending, .descending, .stored])
    #expect(faults == [])
    return keyspaces
  }

  private func check(_ engine: LMDBEngine, _ keyspaces: [Keyspace], _ content: BulkLoadContent) throws {
    let faults = try content.faults(in: engine, keyspaces)
    #expect(faults == [])
  }

  @Test("entries of all sizes are there, and the file goes on being written") func sizes() throws {
    var random = SeededGenerator(seed: testSeed)
    var content = BulkLoadContent()
    for shape in KeyspaceShape.allCases {
      for (count, keyBytes, valueBytes) in [
        (0, 0...0, 0...0), (1, 0...0, 0...0), (1, 507...507, 20_000...20_000), (2, 1...3, 4_000...4_100),
        (300, 0...507, 0...12_000), (5_000, 0...30, 0...60), (2_500, 490...507, 0...2_000),
        (3_000, 100...507, 480...1_000), (600, 10...10, 2_000...2_040), (20, 1...1, 300_000...900_000),
      ] {
        content.add(shape, count, keyBytes: keyBytes, valueBytes: valueBytes, &random)
      }
    }
    var engine = try open(directory.file())
    let keyspaces = try load(content, into: engine)
    try engine.close()
    engine = try open(directory.file(), .openExisting, isBulkLoad: false)
    try check(engine, keyspaces, content)
    // Trees that LMDB changes from now on.
    try content.change(in: engine, keyspaces, &random)
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
      var content = BulkLoadContent()
      for shape in KeyspaceShape.allCases {
        content.add(shape, count, keyBytes: 490...507, valueBytes: 1_400...1_500, &random)
      }
      let engine = try open(directory.file("\(count).mdb"))
      _ = try load(content, into: engine)
      try engine.close()
    }
  }

  @Test("a file is loaded past what the map has room for") func smallMap() throws {
    var random = SeededGenerator(seed: testSeed)
    var content = BulkLoadContent()
    content.add(.documents, 3_000, keyBytes: 1...20, valueBytes: 0...4_000, &random)
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
      let keyspaces = try BulkLoadContent.make([.documents, .entries], in: engine)
      let found = try code {
        _ = try engine.bulkLoad { load in
          for (place, key) in pairs { try load.append(key, [7], in: keyspaces[place]) }
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
    let keyspaces = try BulkLoadContent.make([.documents], in: filled)
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
