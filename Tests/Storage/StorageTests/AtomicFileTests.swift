import TestTools

@Suite struct AtomicFileTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("file") }

  @Test func whatIsWrittenIsRead() throws {
    for bytes: [UInt8] in [[], [1], [UInt8](repeating: 7, count: 100_000)] {
      try AtomicFile.write(bytes, to: path)
      try expect(AtomicFile.read(path, limit: 100_000), equals: bytes)
    }
    try expect(directory.names(), equals: ["file"])
  }

  @Test func aReaderNeverSeesAPartOfAFileThatIsReplaced() throws {
    try AtomicFile.write([UInt8](repeating: 0, count: 50_000), to: path)
    let writer = Thread {
      for round in 1...50 {
        try? AtomicFile.write([UInt8](repeating: UInt8(round), count: 50_000 + round), to: path)
      }
    }
    writer.start()
    repeat {
      let bytes = try AtomicFile.read(path, limit: 100_000)
      let round = bytes.first ?? 255
      expect(bytes, equals: [UInt8](repeating: round, count: 50_000 + Int(round)))
    } while !writer.isFinished
  }

  @Test func aPipeIsReadOnlyWhereItMayBe() throws {
    let path = path
    expect(mkfifo(path, 0o600), equals: 0)
    let error = #expect(throws: StorageError.self) { try AtomicFile.read(path, limit: 10) }
    expect(error?.code == .invalidArgument && error?.path == path, "\(String(describing: error))")
    let writer = Thread { try? Data([1, 2]).write(to: URL(filePath: path)) }
    writer.start()
    try expect(AtomicFile.read(path, limit: 10, mayBePipe: true), equals: [1, 2])
  }

  @Test func anExistingFileIsKeptWhenReplacingIsRefused() throws {
    try AtomicFile.write([1], to: path, replacement: .refused)
    let error = #expect(throws: StorageError.self) {
      try AtomicFile.write([2], to: path, replacement: .refused)
    }
    expect(error?.code, equals: .alreadyExists)
    expect(error?.path, equals: path)
    try expect(AtomicFile.read(path, limit: 10), equals: [1])
    try expect(directory.names(), equals: ["file"])
  }

  @Test(arguments: [true, false])
  func withoutHardLinksANewFileIsMadeAndAnExistingOneKept(exclusiveRenames: Bool) throws {
    try withFileSystem(exclusiveRenames: exclusiveRenames) {
      try AtomicFile.write([1], to: path, replacement: .refused)
      try expect(
        storageCode { try AtomicFile.write([2], to: path, replacement: .refused) }, equals: .alreadyExists)
      try expect(AtomicFile.read(path, limit: 10), equals: [1])
      try expect(directory.names(), equals: ["file"])
    }
  }

  /// Whichever way the name was given.
  @Test(arguments: [true, false], [true, false])
  func theDirectoryIsSyncedAfterwards(hardLinks: Bool, exclusiveRenames: Bool) throws {
    try withFileSystem(hardLinks: hardLinks, exclusiveRenames: exclusiveRenames) {
      let watch = try #require(DirectoryWatch(directory.path))
      try AtomicFile.write([1], to: path, replacement: .refused)
      expect(watch.opens(), equals: 1)
      try AtomicFile.write([2], to: path)
      expect(watch.opens(), equals: 1)
    }
  }

  @Test func errorsNameTheFileAndTheReason() throws {
    try expect(storageCode { try AtomicFile.read(directory.file("none"), limit: 1) }, equals: .notFound)
    let nowhere = #expect(throws: StorageError.self) {
      try AtomicFile.write([1], to: directory.file("none/file"))
    }
    expect(nowhere?.code, equals: .notFound)
    expect(nowhere?.path, equals: directory.file("none/file"))
    try AtomicFile.write([1, 2, 3], to: path)
    try expect(storageCode { try AtomicFile.read(path, limit: 2) }, equals: .invalidArgument)
    #expect(throws: StorageError.self) { try AtomicFile.read(directory.path, limit: 2) }
    #expect(throws: StorageError.self) { try AtomicFile.write([1], to: directory.path) }
    try expect(directory.names(), equals: ["file"])
  }
}
