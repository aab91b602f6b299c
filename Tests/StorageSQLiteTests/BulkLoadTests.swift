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

  private func open(
    _ kind: Kind, _ path: String, _ creation: EngineOptions.Creation = .createNew, isBulkLoad: Bool = true
  ) throws -> SQLiteEngine {
    let options = EngineOptions(
      creation: creation, durability: .none, key: kind.type.encrypts ? Kind.key : nil, isBulkLoad: isBulkLoad)
    return try #require(try kind.type.open(path, options) as? SQLiteEngine)
  }

  /// Fills a file and looks at all of it.
  private func load(_ content: BulkLoadContent, into engine: SQLiteEngine) throws -> [Keyspace] {
    let keyspaces = try #require(try content.load(into: engine))
    let faults = try content.faults(in: engine, keyspaces, [.ascending, .descending, .stored])
    #expect(faults == [])
    return keyspaces
  }

  private func check(_ engine: SQLiteEngine, _ keyspaces: [Keyspace], _ content: BulkLoadContent) throws {
    let faults = try content.faults(in: engine, keyspaces)
    #expect(faults == [])
  }

  @Test("entries of all sizes are there, and the file goes on being written", arguments: Kind.all)
  func sizes(_ kind: Kind) throws {
    var random = SeededGenerator(seed: testSeed)
    var content = BulkLoadContent()
    for shape in KeyspaceShape.allCases {
      for (count, keyBytes, valueBytes) in [
        (0, 0...0, 0...0), (1, 0...0, 0...0), (1, 507...507, 20_000...20_000), (2, 1...3, 4_000...4_100),
        (300, 0...507, 0...12_000), (5_000, 0...30, 0...60), (2_500, 490...507, 0...2_000),
        (3_000, 100...507, 480...1_000),
      ] {
        content.add(shape, count, keyBytes: keyBytes, valueBytes: valueBytes, &random)
      }
    }
    let path = directory.file("a")
    var engine = try open(kind, path)
    let keyspaces = try load(content, into: engine)
    try engine.close()
    engine = try open(kind, path, .openExisting, isBulkLoad: false)
    try check(engine, keyspaces, content)
    // Trees that the library changes from now on.
    try content.change(in: engine, keyspaces, &random)
    try check(engine, keyspaces, content)
    try engine.close()
  }

  @Test("every number of entries around a page's and a level's end", arguments: Kind.all)
  func counts(_ kind: Kind) throws {
    var random = SeededGenerator(seed: testSeed)
    for count in [3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 60, 61, 62, 63, 64, 65, 66, 130, 131] {
      var content = BulkLoadContent()
      for shape in KeyspaceShape.allCases {
        content.add(shape, count, keyBytes: 480...507, valueBytes: 440...480, &random)
      }
      let engine = try open(kind, directory.file("\(count)"))
      _ = try load(content, into: engine)
      try engine.close()
    }
  }

  @Test("what is out of order is refused", arguments: Kind.all) func order(_ kind: Kind) throws {
    let pairs: [[(Int, [UInt8])]] = [
      [(0, [2]), (0, [1])], [(0, [2]), (0, [2])], [(0, [2, 1]), (0, [2])], [(0, [1]), (1, [1]), (0, [2])],
    ]
    for (number, pairs) in pairs.enumerated() {
      let engine = try open(kind, directory.file("\(number)"))
      let keyspaces = try BulkLoadContent.make([.documents, .entries], in: engine)
      let code = errorCode {
        _ = try engine.bulkLoad { load in
          for (place, key) in pairs { try load.append(key, [7], in: keyspaces[place]) }
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
    var content = BulkLoadContent()
    content.add(.documents, (0..<1_100).map { (Array("key \(100_000 + $0)".utf8), value) })
    let engine = try open(kind, directory.file("a"))
    _ = try load(content, into: engine)
    try engine.close()
  }
}
