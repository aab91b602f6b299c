import TestSupport

@Suite struct AtomicFileTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("file") }

  @Test func whatIsWrittenIsRead() throws {
    for bytes: [UInt8] in [[], [1], [UInt8](repeating: 7, count: 100_000)] {
      try AtomicFile.write(bytes, to: path)
      #expect(try AtomicFile.read(path, limit: 100_000) == bytes)
    }
    #expect(try directory.names() == ["file"])
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
      #expect(bytes == [UInt8](repeating: round, count: 50_000 + Int(round)))
    } while !writer.isFinished
  }

  @Test func anExistingFileIsKeptWhenReplacingIsRefused() throws {
    try AtomicFile.write([1], to: path, replacement: .refused)
    let error = #expect(throws: StorageError.self) {
      try AtomicFile.write([2], to: path, replacement: .refused)
    }
    #expect(error?.code == .alreadyExists)
    #expect(error?.path == path)
    #expect(try AtomicFile.read(path, limit: 10) == [1])
    #expect(try directory.names() == ["file"])
  }

  @Test(arguments: [true, false])
  func withoutHardLinksANewFileIsMadeAndAnExistingOneKept(exclusiveRenames: Bool) throws {
    try withFileSystem(exclusiveRenames: exclusiveRenames) {
      try AtomicFile.write([1], to: path, replacement: .refused)
      #expect(
        try storageCode { try AtomicFile.write([2], to: path, replacement: .refused) } == .alreadyExists)
      #expect(try AtomicFile.read(path, limit: 10) == [1])
      #expect(try directory.names() == ["file"])
    }
  }

  /// Whichever way the name was given.
  @Test(arguments: [true, false], [true, false])
  func theDirectoryIsSyncedAfterwards(hardLinks: Bool, exclusiveRenames: Bool) throws {
    try withFileSystem(hardLinks: hardLinks, exclusiveRenames: exclusiveRenames) {
      let watch = try #require(DirectoryWatch(directory.path))
      try AtomicFile.write([1], to: path, replacement: .refused)
      #expect(watch.opens() == 1)
      try AtomicFile.write([2], to: path)
      #expect(watch.opens() == 1)
    }
  }

  @Test func errorsNameTheFileAndTheReason() throws {
    #expect(try storageCode { try AtomicFile.read(directory.file("none"), limit: 1) } == .notFound)
    let nowhere = #expect(throws: StorageError.self) {
      try AtomicFile.write([1], to: directory.file("none/file"))
    }
    #expect(nowhere?.code == .notFound)
    #expect(nowhere?.path == directory.file("none/file"))
    try AtomicFile.write([1, 2, 3], to: path)
    #expect(try storageCode { try AtomicFile.read(path, limit: 2) } == .invalidArgument)
    #expect(throws: StorageError.self) { try AtomicFile.read(directory.path, limit: 2) }
    #expect(throws: StorageError.self) { try AtomicFile.write([1], to: directory.path) }
    #expect(try directory.names() == ["file"])
  }
}
