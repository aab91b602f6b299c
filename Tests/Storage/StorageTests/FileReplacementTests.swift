import TestTools

/// Files of others: links, pipes, permissions and names.
@Suite("Files that are replaced") struct FileReplacementTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("file") }

  private func mode(_ path: String) -> UInt32? { FileAccess(of: path)?.mode }

  private func isLink(_ path: String) -> Bool {
    (try? FileManager.default.destinationOfSymbolicLink(atPath: path)) != nil
  }

  @Test("keep their permissions", arguments: [0o600, 0o640, 0o660, 0o444, 0o755] as [UInt32])
  func permissions(_ expected: UInt32) throws {
    try AtomicFile.write([1], to: path)
    expect(chmod(path, mode_t(expected)), equals: 0)
    try AtomicFile.write([2], to: path, permissions: 0o644)
    expect(mode(path), equals: expected)
    try expect(AtomicFile.read(path, limit: 10), equals: [2])
    try expect(directory.names(), equals: ["file"])
  }

  @Test("stay where a link leads, in a chain and through a directory")
  func links() throws {
    try FileManager.default.createDirectory(
      atPath: directory.file("inner"), withIntermediateDirectories: true)
    for (link, target) in [("link", "inner/real"), ("again", "link"), ("whole", directory.file("again"))] {
      expect(symlink(target, directory.file(link)), equals: 0)
    }
    // The first write makes what the link leads to.
    for byte: UInt8 in [1, 2] {
      try AtomicFile.write([byte], to: directory.file("whole"))
      try expect(AtomicFile.read(directory.file("inner/real"), limit: 10), equals: [byte])
    }
    expect(["link", "again", "whole"].allSatisfy { isLink(directory.file($0)) })
    try expect(directory.names("inner"), equals: ["real"])
    expect(symlink("loop", directory.file("loop")), equals: 0)
    #expect(throws: StorageError.self) { try AtomicFile.write([1], to: directory.file("loop")) }
  }

  @Test("are made beside a link when replacing is refused, and never through it")
  func refusal() throws {
    expect(symlink("nowhere", path), equals: 0)
    try expect(
      storageCode { try AtomicFile.write([1], to: path, replacement: .refused) }, equals: .alreadyExists)
    try expect(directory.names(), equals: ["file"])
  }

  @Test("are written straight if they are devices, pipes or open descriptors")
  func straight() throws {
    let pipe = directory.file("pipe")
    expect(mkfifo(pipe, 0o600), equals: 0)
    let reader = open(pipe, O_RDONLY | O_NONBLOCK)
    defer { close(reader) }
    try AtomicFile.write([7, 8], to: pipe)
    var bytes: [UInt8] = [0, 0, 0]
    expect(read(reader, &bytes, 3) == 2 && bytes == [7, 8, 0])
    try expect(storageCode { try AtomicFile.write([1], to: "/dev/full") }, equals: .diskFull)
    try AtomicFile.write([1], to: "/dev/null")

    let opened = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    defer { close(opened) }
    expect(symlink("/proc/self/fd/\(opened)", directory.file("open")), equals: 0)
    for byte: UInt8 in [1, 2] { try AtomicFile.write([byte], to: directory.file("open")) }
    try expect(AtomicFile.read(path, limit: 10), equals: [1, 2])
    expect(isLink(directory.file("open")))
    try expect(directory.names(), equals: ["file", "open", "pipe"])
  }

  @Test("leave every other file alone, and nothing behind")
  func names() throws {
    let long = String(repeating: "n", count: 255)
    try AtomicFile.write([1], to: directory.file(long))
    try AtomicFile.write([2], to: directory.file(long))
    try expect(directory.names(), equals: [long])
    let abandoned = try FileReplacement(path, permissions: 0o600)
    try expect(directory.names().count, equals: 2)
    abandoned.abandon()
    try expect(directory.names(), equals: [long])
    let isDirectory = try storageCode { try AtomicFile.write([1], to: directory.path) }
    expect(isDirectory, equals: .invalidArgument)
  }

  @Test("are readable for nobody else until they are complete")
  func privacy() throws {
    try AtomicFile.write([1], to: path, permissions: 0o644)
    expect(chmod(path, 0o600), equals: 0)
    let replacement = try FileReplacement(path, permissions: 0o644)
    let name = try #require(try directory.names().first { $0 != "file" })
    expect(mode(directory.file(name)), equals: 0o600)
    replacement.abandon()
  }

  @Test("stay with their owner and group when root replaces them", .enabled(if: getuid() == 0))
  func owner() throws {
    try AtomicFile.write([1], to: path)
    expect(chown(path, 1_234, 2_345) == 0 && chmod(path, 0o640) == 0)
    try AtomicFile.write([2], to: path)
    let access = try #require(FileAccess(of: path))
    expect(access.owner == 1_234 && access.group == 2_345 && access.mode == 0o640)
  }
}
