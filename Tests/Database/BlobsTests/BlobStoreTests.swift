import TestSupport

@testable import Blobs

@Suite("A store of blobs") struct BlobStoreTests {
  private let directory = TemporaryDirectory()

  static let chunk = SealedFormat.chunkBytes
  static let lengths = [
    0, 1, 5, 15, 16, 17, 4_096, chunk - 1, chunk, chunk + 1, 2 * chunk - 1, 2 * chunk, 2 * chunk + 1, 300_007,
  ]

  @Test("blobs of every length come back", arguments: [false, true])
  func roundTrip(_ encrypted: Bool) throws {
    var random = SeededGenerator(seed: testSeed)
    let store = try makeStore(directory, encrypted: encrypted)
    for length in BlobStoreTests.lengths {
      let bytes = random.bytes(length)
      // In pieces of any size.
      let writer = try store.makeWriter()
      var start = 0
      while start < length {
        let count = min(length - start, Int.random(in: 1...100_000, using: &random))
        try writer.write(bytes[start..<(start + count)])
        start += count
      }
      let blob = try writer.finish()
      expect(blob.length, equals: UInt64(length))
      // New blobs can be read before they are saved.
      try expect(store.contents(of: blob.digest), equals: bytes)
      try expect(store.install(blob.digest), equals: .installed)
      store.commit([blob.digest])
      try expect(store.length(of: blob.digest), equals: UInt64(length))
      let reader = try store.open(blob.digest)
      expect(reader.length, equals: UInt64(length))
      var read: [UInt8] = []
      while true {
        let piece = try reader.read(upTo: Int.random(in: 1...150_000, using: &random))
        guard !piece.isEmpty else { break }
        read += piece
      }
      expect(read, equals: bytes)
      try expect(reader.read(upTo: 10), equals: [])
      try expect(store.verify(fileName: try store.fileName(of: blob.digest)), equals: blob)
      for _ in 0..<10 where length > 0 {
        let offset = Int.random(in: 0..<length, using: &random)
        try reader.seek(to: UInt64(offset))
        try expect(reader.read(upTo: 70_000), equals: Array(bytes[offset..<min(length, offset + 70_000)]))
      }
      try expect(storageCode { try reader.seek(to: UInt64(length) + 1) }, equals: .invalidArgument)
    }
    try expect(store.files().count, equals: BlobStoreTests.lengths.count)
    store.discardUnsaved()
    try expect(store.names().count, equals: BlobStoreTests.lengths.count)
  }

  @Test("one content is one file, whoever stores it and how often", arguments: [false, true])
  func dedupe(_ encrypted: Bool) throws {
    let store = try makeStore(directory, encrypted: encrypted)
    let other = try makeStore(directory, encrypted: encrypted)
    let bytes = Array("the same".utf8)
    let blob = try store.store(bytes)
    try expect(store.store(bytes), equals: blob)
    try expect(other.store(bytes), equals: blob)
    try expect(store.install(blob.digest), equals: .installed)
    try expect(other.install(blob.digest), equals: .installed)
    store.commit([blob.digest])
    // The other one who stored it here can still save it.
    try expect(store.install(blob.digest), equals: .installed)
    store.commit([blob.digest])
    other.commit([blob.digest])
    try expect(store.save(bytes), equals: blob.digest)
    try expect(store.files().count, equals: 1)
    try expect(store.install(blob.digest), equals: .stored)
    store.discardUnsaved()
    other.discardUnsaved()
    try expect(store.names().count, equals: 1)
  }

  @Test("threads that store the same and different contents lose nothing", arguments: [false, true])
  func threads(_ encrypted: Bool) throws {
    let store = try makeStore(directory, encrypted: encrypted)
    try onThreads(8) { thread in
      for number in 0..<40 {
        let bytes = Array("blob \(number % 2 == 0 ? number : number * 100 + thread)".utf8)
        let digest = try store.save(bytes)
        let read = try store.contents(of: digest)
        if read != bytes { throw ConformanceFailure("blob \(number) of \(thread)") }
      }
    }
    try expect(store.files().count, equals: 20 + 20 * 8)
    expect(!store.hasUnsaved)
  }

  @Test(
    "what was never saved is gone at the end, and what a process left behind too", arguments: [false, true])
  func unsaved(_ encrypted: Bool) throws {
    var digest: BlobDigest?
    do {
      let store = try makeStore(directory, encrypted: encrypted)
      digest = try store.store(Array("never saved".utf8)).digest
      do {
        let dropped = try store.makeWriter()
        try dropped.write(Array("dropped".utf8))
      }
      expect(store.hasUnsaved)
    }
    let store = try makeStore(directory, encrypted: encrypted)
    try expect(store.names(), equals: [])
    try expect(store.install(try #require(digest)), equals: .missing)
    // Of a process that was killed.
    let left = store.directory + "/incoming-0123456789abcdef"
    try FileManager.default.createDirectory(atPath: left, withIntermediateDirectories: true)
    _ = FileManager.default.createFile(atPath: left + "/1", contents: Data([1, 2, 3]))
    // And of one that lives.
    let living = try makeStore(directory, encrypted: encrypted)
    let kept = try living.store(Array("unsaved elsewhere".utf8)).digest
    try expect(store.beginSweep()?.finish(), equals: BlobSweep.Result())
    expect(!FileManager.default.fileExists(atPath: left))
    try expect(living.install(kept), equals: .installed)
  }

  @Test("a sweep removes what nothing names and nothing else", arguments: [false, true])
  func sweep(_ encrypted: Bool) throws {
    let store = try makeStore(directory, encrypted: encrypted)
    try expect(store.beginSweep() == nil)
    let kept = try store.save(Array("kept".utf8))
    let named = try store.save(Array("named in bytes".utf8))
    let dropped = try store.save(Array("dropped".utf8))
    let wanted = try store.save(Array("wanted again".utf8))
    _ = FileManager.default.createFile(atPath: store.directory + "/foreign.txt", contents: Data([1]))
    let sweep = try #require(try store.beginSweep())
    try sweep.keep(kept)
    try Array("{\"a\":\"\(named)\"}".utf8).withUnsafeBytes { try sweep.keepAll(in: $0) }
    // After the beginning: a new one, and one that somebody wants again.
    let new = try store.save(Array("new".utf8))
    _ = try store.save(Array("wanted again".utf8))
    try expect(sweep.finish().blobs, equals: 1)
    for digest in [kept, named, wanted, new] { try expect(store.contains(digest)) }
    try expect(!store.contains(dropped))
    try expect(store.names().contains("foreign.txt"))
  }

  @Test("a failed transaction's blob can be saved after a compaction took it", arguments: [false, true])
  func savedAgain(_ encrypted: Bool) throws {
    let store = try makeStore(directory, encrypted: encrypted)
    let bytes = Array("twice".utf8)
    let digest = try store.store(bytes).digest
    try expect(store.install(digest), equals: .installed)
    // Not committed.
    try expect(store.beginSweep()?.finish().blobs, equals: 1)
    try expect(store.install(digest), equals: .installed)
    store.commit([digest])
    try expect(store.contents(of: digest), equals: bytes)
  }

  @Test("an open blob can be read to its end while it is removed", arguments: [false, true])
  func removedWhileRead(_ encrypted: Bool) throws {
    var random = SeededGenerator(seed: testSeed)
    let store = try makeStore(directory, encrypted: encrypted)
    let bytes = random.bytes(500_000)
    let digest = try store.save(bytes)
    let reader = try store.open(digest)
    var read = try reader.read(upTo: 100)
    try expect(store.beginSweep()?.finish().blobs, equals: 1)
    read += try reader.read(upTo: 1_000_000)
    expect(read, equals: bytes)
    try expect(storageCode { _ = try store.open(digest) }, equals: .notFound)
  }

  @Test("a store that is read only writes nothing, also not its directory", arguments: [false, true])
  func readOnly(_ encrypted: Bool) throws {
    let reading = try makeStore(directory, encrypted: encrypted, isReadOnly: true)
    try expect(storageCode { _ = try reading.store([1]) }, equals: .readOnly)
    try expect(storageCode { _ = try reading.beginSweep() }, equals: .readOnly)
    try expect(reading.files().isEmpty)
    expect(!FileManager.default.fileExists(atPath: reading.directory))
    try expect(
      reading.contents(of: makeStore(directory, encrypted: encrypted).save([1, 2, 3])), equals: [1, 2, 3])
  }

  @Test(
    "a damaged file of a wrong length is replaced when its content is stored again", arguments: [false, true])
  func healing(_ encrypted: Bool) throws {
    let store = try makeStore(directory, encrypted: encrypted)
    let bytes = Array("healed".utf8)
    let digest = try store.save(bytes)
    let path = try store.path(of: digest)
    try FileManager.default.removeItem(atPath: path)
    _ = FileManager.default.createFile(atPath: path, contents: Data([1]))
    try expect(storageCode { _ = try store.contents(of: digest) }, equals: .damaged)
    try expect(store.save(bytes), equals: digest)
    try expect(store.contents(of: digest), equals: bytes)
  }

  @Test("names of encrypted files tell nothing: other keys give other names, and no digest is in them")
  func names() throws {
    let one = try makeStore(directory, encrypted: true)
    let two = try BlobStore(directory: directory.path + "/other", dataKey: dataKey(8), durability: .none)
    let digest = try one.save(Array("known".utf8))
    let name = try one.fileName(of: digest)
    try expect(two.fileName(of: digest) != name)
    expect(!name.contains(digest.fileName.prefix(8)))
    try expect(one.files().map(\.name), equals: [name])
    let bytes = try Data(contentsOf: URL(fileURLWithPath: one.directory + "/" + name))
    expect(bytes.range(of: Data("known".utf8)) == nil)
  }
}
