import Foundation
import TestTools
import Testing

@testable import System

#if canImport(Glibc)
  import Glibc
#endif

@Suite("Files without a name") struct NamelessFileTests {
  private let directory = TemporaryDirectory()

  @Test("a file has no name, and can be written and read", arguments: [true, false])
  func opening(_ namelessFiles: Bool) throws {
    let descriptor = try withFileSystem(exclusiveRenames: true, namelessFiles: namelessFiles) {
      try NamelessFile.open(in: directory.path)
    }
    defer { close(descriptor) }
    var status = stat()
    expect(fstat(descriptor, &status), equals: 0)
    expect(status.st_nlink == 0 && status.st_mode & 0o777 == 0o600)
    try expect(directory.names(), equals: [])
    expect(pwrite(descriptor, "text", 4, 8), equals: 4)
    var bytes = [UInt8](repeating: 1, count: 20)
    expect(pread(descriptor, &bytes, 20, 0), equals: 12)
    expect(bytes[8..<12].elementsEqual("text".utf8))
  }

  @Test("what killed processes left is removed, and nothing else") func leftovers() throws {
    let left = "touchstone-nameless-0123456789abcdef.tmp"
    let kept = [
      // Something is in it; another name.
      "touchstone-nameless-0123456789abcdee.tmp", "touchstone-nameless-0123.tmp",
      "touchstone-nameless-0123456789abcdeg.tmp", "touchstone-nameless-0123456789abcdef.tmp2",
    ]
    for name in [left] + kept {
      try Data((name == kept[0] ? "bytes" : "").utf8).write(to: URL(fileURLWithPath: directory.file(name)))
    }
    let (folder, link) = (
      "touchstone-nameless-1123456789abcdef.tmp", "touchstone-nameless-2123456789abcdef.tmp"
    )
    try FileManager.default.createDirectory(
      atPath: directory.file(folder), withIntermediateDirectories: false)
    symlink(directory.file(kept[1]), directory.file(link))
    close(try NamelessFile.open(in: directory.path))
    try expect(directory.names().contains(left), "a file without a name needs no search")
    try withFileSystem(exclusiveRenames: true, namelessFiles: false) {
      close(try NamelessFile.open(in: directory.path))
    }
    try expect(directory.names(), equals: (kept + [folder, link]).sorted())
  }

  @Test("a directory that isn't there is named", arguments: [true, false])
  func missing(_ namelessFiles: Bool) throws {
    let path = directory.file("missing")
    try withFileSystem(exclusiveRenames: true, namelessFiles: namelessFiles) {
      let error = try #require(throws: StorageError.self) { try NamelessFile.open(in: path) }
      expect(error.code == .notFound && error.path == path, "\(error)")
    }
  }
}
