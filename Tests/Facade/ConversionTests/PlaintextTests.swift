import Datasets
import Encryption
import StorageConformance
import TestSupport

@testable import Touchstone

/// Plaintext that is planted in an encrypted database, and what a deep check says of it.
@Suite("Plaintext search") struct PlaintextTests {
  /// The engines that encrypt.
  static var engines: [EngineName] { Engines.names.filter { (try? Engines.type($0).encrypts) ?? false } }

  private static let secret = "the treasure lies under the third palm"

  private func fill(_ database: Database) throws {
    try database.saveBatch(0..<300) { number in
      (
        "person-\(number)-of-300",
        [
          "name": .string("Somebody number \(number * 7919)"), "telephoneNumber": .int(Int64(number)),
          "notes": [.string("note \(number) of a person")],
        ]
      )
    }
    try database.save("person-3-of-300", ["name": "Replaced by another name"])
    try database.delete("person-4-of-300")
    try database.saveLocalDocument("checkpoint-of-a-peer", ["lastSequence": "seventeen thousand"])
    let blob = try database.makeBlob(Array(String(repeating: "\(Self.secret). ", count: 400).utf8))
    try database.save("with-a-blob", ["blob": blob.jsonValue])
    try database.createIndex("indexByName", on: ["name"])
  }

  private func withEncrypted(
    _ engine: EngineName, _ body: (Database, _ path: String) throws -> Void
  ) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open(
      "secret", in: directory.path,
      options: DatabaseOptions(engine: engine, durability: .none, key: try oldKey()))
    try fill(database)
    try body(database, database.path)
    try database.close()
  }

  private func faults(_ database: Database) throws -> [String] {
    try database.check(deep: true).map(\.description)
  }

  @Test("an encrypted database holds nothing that can be read", arguments: engines)
  func clean(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, _ in
      var files: [FileEntropy] = []
      try expect(database.check(deep: true, onFile: { files.append($0) }), equals: [])
      let data = try #require(files.first { database.engineFile.hasSuffix("/" + $0.name) })
      expect(data.entropy ?? 0 > 7.9 && data.lowest ?? 0 > ByteEntropy.leastOfBlock, "\(data)")
      expect(files.contains { $0.name.hasPrefix("Attachments/") && $0.lowest ?? 0 > 7.9 }, "\(files)")
      expect(files.contains { $0.name == "key.json" && $0.entropy == nil && $0.isPlain })
      expect(files.first { $0.name == "lock" }?.description, equals: "lock: 0 bytes, too small to judge")
      // A shallow check doesn't look at files.
      files = []
      try expect(database.check(onFile: { files.append($0) }), equals: [])
      expect(files, equals: [])
    }
  }

  /// Something that is planted: bytes of a file in the directory.
  struct Plant: Sendable, CustomTestStringConvertible {
    let name: String
    /// The file, by its name: `DATA` is the engine's.
    let file: String
    /// What some fault has to contain.
    let expected: String
    let bytes: @Sendable () -> [UInt8]
    var testDescription: String { "\(name) in \(file)" }

    init(_ name: String, in file: String, _ expected: String, _ bytes: @escaping @Sendable () -> [UInt8]) {
      (self.name, self.file, self.expected, self.bytes) = (name, file, expected, bytes)
    }
  }

  /// Between bytes that look random.
  private static func hidden(_ bytes: [UInt8], after count: Int = 100_003) -> [UInt8] {
    var random = SeededGenerator(seed: 7)
    return random.bytes(count) + bytes + random.bytes(40)
  }

  static let plants: [Plant] = {
    let places = ["DATA-wal", "Attachments/incoming-1", "DATA-left", "data-0.sqlite", "notes.txt"]
    var plants = places.map { file in
      Plant("a document's ID", in: file, "of document 'person-123-of-300'") {
        hidden(Array("person-123-of-300".utf8))
      }
    }
    plants += [
      Plant("a string", in: "DATA-left", "can be read: \"") {
        hidden(Array("Somebody number \(200 * 7919). note 200 of a person".utf8))
      },
      Plant("UTF-16", in: "DATA-left", "can be read as UTF-16") {
        hidden("Somebody number \(201 * 7919)".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] })
      },
      Plant("big-endian UTF-16", in: "DATA-left", "can be read as UTF-16") {
        hidden("Somebody number \(201 * 7919)".utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] })
      },
      Plant("a string at the end of the file", in: "DATA-left", "of document 'person-17-of-300'") {
        hidden(Array("person-17-of-300".utf8)).dropLast(40)
      },
      Plant(
        "a string where one piece ends and the next begins", in: "DATA-left", "of document 'person-17-of-300'"
      ) {
        hidden(Array("person-17-of-300".utf8), after: (256 << 10) - 7)
      },
      Plant("a property's name", in: "DATA-left", "of the property 'telephoneNumber'") {
        hidden(Array("telephoneNumber".utf8))
      },
      Plant("an index's name", in: "DATA-left", "of meta data 'index/indexByName'") {
        hidden(Array("index/indexByName".utf8))
      },
      Plant("a local document's name", in: "DATA-left", "of local document 'checkpoint-of-a-peer'") {
        hidden(Array("checkpoint-of-a-peer".utf8))
      },
      Plant("a local document's text", in: "DATA-left", "of local document 'checkpoint-of-a-peer'") {
        hidden(Array("\"lastSequence\":\"seventeen thousand\"".utf8))
      },
      Plant("a keyspace's name", in: "DATA-left", "the name of a keyspace, 'expirations'") {
        hidden(Array("expirations".utf8))
      },
      Plant("a plain file's beginning", in: "DATA-left", "the format of a plain file of SQLite") {
        Array("SQLite format 3\0".utf8) + hidden([])
      },
      Plant("a blob", in: "Attachments/incoming-1", "of the blob in '") {
        hidden(Array(String(repeating: "\(secret). ", count: 400).utf8))
      },
      Plant("an unencrypted blob", in: "Attachments/2jmj7l5rSw0yVb_vlWAYkK_YBwk=.blob", "of the blob in '") {
        Array(String(repeating: "\(secret). ", count: 400).utf8)
      },
      Plant("a page that isn't encrypted", in: "DATA-wal", "the 4096 bytes at 4096 aren't encrypted") {
        hidden([], after: 4_096 - 40) + [UInt8](repeating: 1, count: 4_096)
      },
      Plant("a page of text", in: "Attachments/incoming-1", "aren't encrypted: their entropy is") {
        hidden([], after: 8_192 - 40)
          + Array(String(repeating: "nothing of ours 0123456789 ", count: 200).utf8)
      },
      Plant("a strange file", in: "notes.txt", "file notes.txt: it doesn't belong to the database") {
        [1]
      },
      Plant(
        "a file of an older state", in: "data-0.sqlite", "file data-0.sqlite: it was left by an interrupted"
      ) {
        [1]
      },
      Plant("a directory of blobs", in: "Attachments-2/x.blob", "file Attachments-2/x.blob: it was left by") {
        [1]
      },
      Plant(
        "a strange file among the blobs", in: "Attachments/n.txt", "it doesn't belong to the database"
      ) {
        [1]
      },
    ]
    return plants
  }()

  @Test("what can be read is found, wherever it lies", arguments: plants)
  func planted(_ plant: Plant) throws {
    for engine in Self.engines {
      let directory = TemporaryDirectory()
      var options = DatabaseOptions(engine: engine, durability: .none, key: try oldKey())
      let made = try Database.open("secret", in: directory.path, options: options)
      try fill(made)
      let data = try #require(made.engineFile.split(separator: "/").last)
      let path = made.path
      try made.close()
      // What would be looked at by who opens it for writing.
      options.isReadOnly = true
      let database = try Database.open("secret", in: directory.path, options: options)
      try expect(faults(database), equals: [], "\(engine)")
      let file = path + "/" + plant.file.replacing("DATA", with: data)
      try FileManager.default.createDirectory(
        atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try Data(plant.bytes()).write(to: URL(fileURLWithPath: file))
      let found = try faults(database)
      expect(found.contains { $0.contains(plant.expected) }, "\(engine): \(found)")
      // Not the whole of it.
      expect(!found.contains { $0.contains("treasure") || $0.contains("Somebody") }, "\(engine): \(found)")
      try? database.close()
    }
  }

  @Test("what is appended to the engine's own file is found", arguments: engines)
  func appended(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, _ in
      let file = try #require(FileHandle(forUpdatingAtPath: database.engineFile))
      // Whole pages, as the engine's own.
      let size = try file.seekToEnd()
      try file.write(
        contentsOf: Data(
          (Self.hidden(Array("person-99-of-300".utf8), after: 2_000) + Self.hidden([], after: 4_096)).prefix(
            4_096)))
      let found = try faults(database)
      expect(found.contains { $0.hasSuffix(", of document 'person-99-of-300'") }, "\(found)")
      // Closing this descriptor would drop the engine's locks: it is cut, and left open.
      try file.truncate(atOffset: size)
      try expect(faults(database), equals: [])
      withExtendedLifetime(file) {}
    }
  }

  @Test("what an encryption that was interrupted leaves is found")
  func interrupted() throws {
    let directory = TemporaryDirectory()
    for engine in [EngineName.sqlite, .lmdb] {
      let name = "\(engine)"
      let plain = try Database.open(
        name, in: directory.path, options: DatabaseOptions(engine: engine, durability: .none))
      try fill(plain)
      try plain.close()
      let path = directory.path + "/\(name).touchstone"
      let old = try FileManager.default.contentsOfDirectory(atPath: path).filter { $0.hasPrefix("data-") }
      for file in old {
        try FileManager.default.copyItem(atPath: "\(path)/\(file)", toPath: "\(path)/kept-\(file)")
      }
      try Database.encrypt(name, in: directory.path, key: oldKey(), engine: .sqlcipher)
      let database = try Database.open(
        name, in: directory.path, options: DatabaseOptions(isReadOnly: true, key: oldKey()))
      defer { try? database.close() }
      for file in old {
        // The old files are gone.
        expect(!FileManager.default.fileExists(atPath: "\(path)/\(file)") || file.hasPrefix("data-2"))
      }
      for file in old {
        try FileManager.default.moveItem(
          atPath: "\(path)/kept-\(file)", toPath: "\(path)/\(file.replacing("1", with: "7"))")
      }
      let found = try faults(database)
      expect(
        found.contains { $0.hasPrefix("file data-7.") && $0.contains("left by an interrupted operation") },
        "\(found)")
      expect(found.contains { $0.hasPrefix("file data-7.") && $0.contains("can be read") }, "\(found)")
      expect(
        found.contains { $0.hasPrefix("file data-7.") && $0.contains("more samples can be read") }, "\(found)"
      )
    }
  }

  @Test("a deep check takes nothing for left that a compaction is about to name", arguments: engines)
  func besideCompaction(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, path in
      let found = Lock<[String]?>(nil)
      let done = CountingSemaphore()
      let isDone = try database.open.maintenance.withLock { _ in
        // As a compaction does: a file that gets its name, or goes.
        try Data("new".utf8).write(to: URL(fileURLWithPath: path + "/data-2.new"))
        Thread.detachNewThread {
          let faults = (try? database.check(deep: true))?.map(\.description)
          found.withLock { $0 = faults }
          done.signal()
        }
        let isDone = done.wait(seconds: 0.3)
        try FileManager.default.removeItem(atPath: path + "/data-2.new")
        return isDone
      }
      if !isDone { done.wait() }
      expect(found.withLock { $0 }, equals: [])
      // In a batch, which a compaction waits for, it doesn't wait.
      try expect(database.inBatch { try faults(database) }, equals: [])
    }
  }

  @Test(
    "a database isn't closed under a deep check, whose files the next engine would lock", arguments: engines)
  func closingUnderACheck(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, _ in
      var hasCompacted = false
      let codes = Lock<[DatabaseError.Code?]>([])
      _ = try database.check(
        deep: true,
        progress: { _ in
          guard !hasCompacted else { return }
          hasCompacted = true
          try? database.compact()
        },
        onFile: { _ in
          codes.withLock { codes in
            if codes.isEmpty { codes.append(try? databaseCode { try database.close() }) }
          }
        })
      expect(codes.withLock { $0 }, equals: [.inUse])
      try expect(faults(database), equals: [])
    }
  }

  @Test("what a compaction removes is given up, also when a check has read it", arguments: engines)
  func removedFiles(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, path in
      for _ in 0..<3 {
        try expect(faults(database), equals: [])
        try database.compact()
      }
      let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      let files = descriptors.compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
      }
      expect(files.filter { $0.hasPrefix(path + "/") && $0.hasSuffix(" (deleted)") }, equals: [])
    }
  }

  @Test("a description with more than it needs is found", arguments: engines)
  func description(_ engine: EngineName) throws {
    try withEncrypted(engine) { database, path in
      let file = URL(fileURLWithPath: path + "/database.json")
      let text = try String(contentsOf: file, encoding: .utf8)
      try Data((text.dropLast() + ",\"note\":\"\(Self.secret)\"}").utf8).write(to: file)
      try expect(faults(database), equals: ["file database.json: it has the unknown member \"note\""])
    }
  }

  @Test("samples are found in bytes as a naive search finds them")
  func samples() throws {
    for seed in 0..<UInt64(20) {
      var random = SeededGenerator(seed: seed)
      let samples = PlaintextSamples()
      let planted = (0..<500).map { _ in random.bytes(8 + random.below(9)) }
      for (number, sample) in planted.enumerated() {
        samples.begin("sample", "\(number)")
        sample.withUnsafeBytes { samples.add(allOf: $0, limit: 1) }
      }
      expect(samples.count, equals: 500)
      var text = random.bytes(700_000)
      var expected: [Int: Int] = [:]
      for _ in 0..<200 {
        let sample = random.below(500)
        let place = random.below(text.count - 32)
        // Not over another one.
        guard expected.keys.allSatisfy({ abs($0 - place) > 32 }) else { continue }
        text.replaceSubrange(place..<(place + planted[sample].count), with: planted[sample])
        expected[place] = sample
      }
      let directory = TemporaryDirectory()
      let path = directory.path + "/file"
      try Data(text).write(to: URL(fileURLWithPath: path))
      let file = open(path, O_RDONLY)
      defer { close(file) }
      let result = try PlaintextSearch.run(file, path: path, for: samples, matchLimit: .max) { _ in }
      expect(result.places, equals: expected.count, "seed \(seed)")
      for match in result.matches {
        expect(expected[match.offset].map { "sample '\($0)'" }, equals: match.owner, "seed \(seed)")
        expect(match.length, equals: expected[match.offset].map { planted[$0].count }, "seed \(seed)")
      }
      expect(result.entropy.bytes, equals: UInt64(text.count))
      expect(result.entropy.value ?? 0 > 7.99)
    }
  }

  @Test("more samples than fit are taken in several passes")
  func passes() throws {
    let samples = PlaintextSamples(capacity: 4_096)
    var passes = 0
    for number in 0..<10_000 {
      let text = "text number \(number * 104_729)"
      samples.begin("text", text)
      var copy = text
      copy.withUTF8 { _ = samples.add(somewhereIn: UnsafeRawBufferPointer($0)) }
      if samples.isFull {
        passes += 1
        samples.removeAll()
        expect(samples.count, equals: 0)
      }
    }
    expect(passes, equals: 3)
  }

  @Test("travel-sample, encrypted, holds nothing that can be read")
  func travelSample() throws {
    let dataset = try LoadedDataset.load(KnownDatasets.standard().name)
    for engine in Self.engines {
      let directory = TemporaryDirectory()
      let database = try Database.open(
        "travel", in: directory.path,
        options: DatabaseOptions(engine: engine, durability: .none, key: oldKey()))
      try database.inBatch {
        for number in 0..<dataset.count {
          try database.save(String(decoding: dataset.id(number), as: UTF8.self), json: dataset.json(number))
        }
      }
      try database.createIndex("byName", on: ["type", "name"])
      let clock = ContinuousClock()
      var bytes = 0
      var faults: [String] = []
      let seconds = try clock.measure {
        faults = try database.check(deep: true, onFile: { bytes += $0.bytes }).map(\.description)
      }
      expect(faults, equals: [], "\(engine)")
      print(
        "\(engine): a deep check of \(dataset.count) documents, \(bytes) bytes of files, takes \(seconds)")
      try database.close()
    }
  }
}
