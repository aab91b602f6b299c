import TestSupport

@testable import Blobs

@Suite("Damaged blobs") struct BlobDamageTests {
  static let chunk = SealedFormat.sealedChunkBytes
  static let header = SealedFormat.headerBytes

  private struct Fixture {
    let directory = TemporaryDirectory()
    let store: BlobStore
    let bytes: [UInt8]
    let digest: BlobDigest
    let path: String
    let file: [UInt8]

    init(encrypted: Bool, length: Int, seed: UInt64 = testSeed) throws {
      var random = SeededGenerator(seed: seed)
      bytes = random.bytes(length)
      store = try makeStore(directory, encrypted: encrypted)
      digest = try store.save(bytes)
      path = try store.path(of: digest)
      file = try [UInt8](Data(contentsOf: URL(fileURLWithPath: path)))
    }

    func put(_ bytes: [UInt8]) throws {
      unlink(path)
      try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    /// What reading in pieces gives before it ends or fails.
    func read(pieces: Int = 50_000) throws -> (bytes: [UInt8], code: StorageError.Code?) {
      var bytes: [UInt8] = []
      let code = try storageCode {
        let reader = try store.open(digest)
        while true {
          let piece = try reader.read(upTo: pieces)
          guard !piece.isEmpty else { break }
          bytes += piece
        }
        try reader.verify()
      }
      return (bytes, code)
    }

    /// Nothing but right data, and an error.
    func expectDamage(_ what: String) throws {
      let (read, code) = try read()
      expect(code == .damaged || code == .unsupportedVersion, "\(what)")
      expect(bytes.starts(with: read), "\(what)")
      let whole = try storageCode { _ = try store.contents(of: digest) }
      expect(whole == .damaged || whole == .unsupportedVersion, "\(what)")
    }
  }

  @Test("each flipped bit of an encrypted blob is an error and never wrong data")
  func flips() throws {
    let fixture = try Fixture(encrypted: true, length: 40)
    for index in fixture.file.indices {
      var file = fixture.file
      file[index] ^= 1 << UInt8(index % 8)
      try fixture.put(file)
      try fixture.expectDamage("byte \(index)")
    }
    var random = SeededGenerator(seed: testSeed)
    let large = try Fixture(encrypted: true, length: 3 * 65_536 + 100)
    for _ in 0..<(isLong ? 1_000 : 100) {
      let index = Int.random(in: large.file.indices, using: &random)
      var file = large.file
      file[index] ^= UInt8.random(in: 1...255, using: &random)
      try large.put(file)
      try large.expectDamage("byte \(index), TOUCHSTONE_SEED=\(testSeed)")
    }
  }

  @Test("a swapped, dropped, doubled, truncated or appended chunk is an error and never wrong data")
  func chunks() throws {
    for length in [3 * 65_536, 3 * 65_536 + 100] {
      let fixture = try Fixture(encrypted: true, length: length)
      let head = Array(fixture.file[..<BlobDamageTests.header])
      let body = Array(fixture.file[BlobDamageTests.header...])
      let chunks = stride(from: 0, to: body.count, by: BlobDamageTests.chunk).map {
        Array(body[$0..<min($0 + BlobDamageTests.chunk, body.count)])
      }
      var cases: [(String, [[UInt8]])] = []
      for index in chunks.indices {
        var dropped = chunks
        dropped.remove(at: index)
        cases.append(("dropped \(index)", dropped))
        var doubled = chunks
        doubled.insert(chunks[index], at: index)
        cases.append(("doubled \(index)", doubled))
        var replaced = chunks
        replaced[index] = chunks[(index + 1) % chunks.count]
        cases.append(("replaced \(index)", replaced))
        for other in (index + 1)..<max(chunks.count, index + 1) {
          var swapped = chunks
          swapped.swapAt(index, other)
          cases.append(("swapped \(index) and \(other)", swapped))
        }
        cases.append(("only up to \(index)", Array(chunks[..<index])))
      }
      cases.append(("an empty last chunk", chunks + [[UInt8](repeating: 0, count: 16)]))
      cases.append(("another chunk", chunks + [chunks[0]]))
      cases.append(("a byte more", chunks + [[0]]))
      var cut = chunks
      cut[cut.count - 1].removeLast()
      cases.append(("a byte less", cut))
      for (what, chunks) in cases where !(what.hasPrefix("only") && chunks.count == 4) {
        try fixture.put(head + chunks.flatMap { $0 })
        try fixture.expectDamage("\(what) of \(length)")
      }
      try fixture.put(fixture.file)
      try expect(fixture.read().code == nil)
    }
  }

  @Test("another blob's file, its header, its chunk and another database's file are errors")
  func foreign() throws {
    let fixture = try Fixture(encrypted: true, length: 65_536 + 100)
    let other = try Fixture(encrypted: true, length: 65_536 + 100, seed: testSeed &+ 1)
    let header = BlobDamageTests.header
    try fixture.put(other.file)
    try fixture.expectDamage("another blob")
    try fixture.put(Array(other.file[..<header]) + fixture.file[header...])
    try fixture.expectDamage("another header")
    try fixture.put(Array(fixture.file[..<header]) + other.file[header...])
    try fixture.expectDamage("another body")
    try fixture.put(
      Array(fixture.file[..<header]) + other.file[header..<(header + BlobDamageTests.chunk)]
        + fixture.file[(header + BlobDamageTests.chunk)...])
    try fixture.expectDamage("another chunk")
    // The same content under another key.
    let directory = TemporaryDirectory()
    let elsewhere = try BlobStore(directory: directory.path, dataKey: dataKey(8), durability: .none)
    let digest = try elsewhere.save(fixture.bytes)
    expect(digest, equals: fixture.digest)
    try fixture.put([UInt8](Data(contentsOf: URL(fileURLWithPath: try elsewhere.path(of: digest)))))
    try fixture.expectDamage("another key")
    // Plain content in an encrypted database.
    try fixture.put(fixture.bytes)
    try fixture.expectDamage("plain content")
  }

  @Test("short and random files are errors")
  func garbage() throws {
    var random = SeededGenerator(seed: testSeed)
    let fixture = try Fixture(encrypted: true, length: 1_000)
    for count in [0, 1, 7, 8, 40, 99, 100, 101, 115, 116, 117, 131, 132, 1_000, 70_000] {
      try fixture.put(random.bytes(count))
      try fixture.expectDamage("\(count) random bytes")
      try fixture.put(Array(fixture.file.prefix(min(count, fixture.file.count - 1))))
      try fixture.expectDamage("the first \(count) bytes")
      try fixture.put([UInt8](repeating: 0, count: count))
      try fixture.expectDamage("\(count) zeros")
    }
    var future = fixture.file
    future[7] = 2
    try fixture.put(future)
    try expect(storageCode { _ = try fixture.store.open(fixture.digest) }, equals: .unsupportedVersion)
  }

  @Test("a changed plain blob is an error at its end, and whole reads never give wrong data")
  func plain() throws {
    let fixture = try Fixture(encrypted: false, length: 200_000)
    for (what, file) in [
      ("flipped", fixture.file.map { $0 ^ 1 }), ("cut", Array(fixture.file.dropLast())),
      ("longer", fixture.file + [0]), ("empty", []),
    ] {
      try fixture.put(file)
      try expect(
        storageCode { _ = try fixture.store.contents(of: fixture.digest) }, equals: .damaged, "\(what)")
      try expect(fixture.read().code, equals: .damaged, "\(what)")
      try expect(
        storageCode { _ = try fixture.store.verify(fileName: fixture.digest.fileName) }, equals: .damaged,
        "\(what)"
      )
    }
    unlink(fixture.path)
    try FileManager.default.createDirectory(atPath: fixture.path, withIntermediateDirectories: true)
    try expect(storageCode { _ = try fixture.store.open(fixture.digest) }, equals: .damaged)
    try FileManager.default.removeItem(atPath: fixture.path)
    try expect(storageCode { _ = try fixture.store.open(fixture.digest) }, equals: .notFound)
  }
}
