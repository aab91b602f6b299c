import Foundation
import Storage
import TestSupport
import Testing

@Suite struct AtomicFileTests {
  @Test func whatIsWrittenIsRead() throws {
    try withTemporaryDirectory { directory in
      for bytes: [UInt8] in [[], [1], [UInt8](repeating: 7, count: 100_000)] {
        try AtomicFile.write(bytes, to: directory + "/file")
        #expect(try AtomicFile.read(directory + "/file", limit: 100_000) == bytes)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file"])
    }
  }

  @Test func aReaderNeverSeesAPartOfAFileThatIsReplaced() throws {
    try withTemporaryDirectory { directory in
      let path = directory + "/file"
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
  }

  @Test func anExistingFileIsKeptWhenReplacingIsRefused() throws {
    try withTemporaryDirectory { directory in
      let path = directory + "/file"
      try AtomicFile.write([1], to: path, replacement: .refused)
      let error = #expect(throws: StorageError.self) {
        try AtomicFile.write([2], to: path, replacement: .refused)
      }
      #expect(error?.code == .alreadyExists)
      #expect(error?.path == path)
      #expect(try AtomicFile.read(path, limit: 10) == [1])
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file"])
    }
  }

  @Test(arguments: [true, false])
  func withoutHardLinksANewFileIsMadeAndAnExistingOneKept(exclusiveRenames: Bool) throws {
    var abilities = NewFileName.Abilities()
    abilities.hardLinks = false
    abilities.exclusiveRenames = exclusiveRenames
    try NewFileName.$abilities.withValue(abilities) {
      try withTemporaryDirectory { directory in
        let path = directory + "/file"
        try AtomicFile.write([1], to: path, replacement: .refused)
        let error = #expect(throws: StorageError.self) {
          try AtomicFile.write([2], to: path, replacement: .refused)
        }
        #expect(error?.code == .alreadyExists)
        #expect(try AtomicFile.read(path, limit: 10) == [1])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file"])
      }
    }
  }

  /// Whichever way the name was given.
  @Test(arguments: [true, false], [true, false])
  func theDirectoryIsSyncedAfterwards(hardLinks: Bool, exclusiveRenames: Bool) throws {
    var abilities = NewFileName.Abilities()
    abilities.hardLinks = hardLinks
    abilities.exclusiveRenames = exclusiveRenames
    try NewFileName.$abilities.withValue(abilities) {
      try withTemporaryDirectory { directory in
        let watch = try #require(DirectoryWatch(directory))
        try AtomicFile.write([1], to: directory + "/file", replacement: .refused)
        #expect(watch.opens() == 1)
        try AtomicFile.write([2], to: directory + "/file")
        #expect(watch.opens() == 1)
      }
    }
  }

  @Test func errorsNameTheFileAndTheReason() throws {
    try withTemporaryDirectory { directory in
      let absent = #expect(throws: StorageError.self) { try AtomicFile.read(directory + "/none", limit: 1) }
      #expect(absent?.code == .notFound)
      let nowhere = #expect(throws: StorageError.self) {
        try AtomicFile.write([1], to: directory + "/none/file")
      }
      #expect(nowhere?.code == .notFound)
      #expect(nowhere?.path == directory + "/none/file")
      try AtomicFile.write([1, 2, 3], to: directory + "/file")
      let long = #expect(throws: StorageError.self) { try AtomicFile.read(directory + "/file", limit: 2) }
      #expect(long?.code == .invalidArgument)
      #expect(throws: StorageError.self) { try AtomicFile.read(directory, limit: 2) }
      #expect(throws: StorageError.self) { try AtomicFile.write([1], to: directory) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == ["file"])
    }
  }
}
