import Foundation
import TestTools
import Testing

@testable import System

@Suite("Trees of files") struct FileTreeTests {
  private let directory = TemporaryDirectory()

  private func make(_ name: String) throws {
    try Data(name.utf8).write(to: URL(fileURLWithPath: directory.file(name)))
  }

  @Test("all names of a directory are listed, also the longest, hidden and odd ones")
  func names() throws {
    let names = [String(repeating: "n", count: 255), ".hidden", "...", "é", "a b", "inner"]
    for name in names.dropLast() { try make(name) }
    try FileManager.default.createDirectory(
      atPath: directory.file("inner"), withIntermediateDirectories: false)
    try expect(Set(FileTree.names(in: directory.path)), equals: Set(names))
    try expect(FileTree.names(in: directory.file("inner")), equals: [])
  }

  @Test("a directory that can't be listed is an error with its path")
  func unlisted() throws {
    try make("file")
    for (name, code) in [("missing", ENOENT), ("file", ENOTDIR)] {
      let error = try #require(throws: StorageError.self) { try FileTree.names(in: directory.file(name)) }
      expect(error.engineCode == Int(code) && error.path == directory.file(name), "\(error)")
    }
  }

  @Test("is removed with all that is in it, but without what a link leads to")
  func removal() throws {
    let inner = directory.file("tree/inner")
    try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
    for name in ["kept", "tree/a", "tree/inner/b"] { try make(name) }
    expect(symlink(directory.file("kept"), inner + "/to-file") == 0)
    expect(symlink(directory.path, inner + "/to-directory") == 0)
    try FileTree.remove(directory.file("tree"))
    try expect(FileTree.names(in: directory.path), equals: ["kept"])
    // What is gone already isn't an error.
    try FileTree.remove(directory.file("tree"))
    try make("more")
    try FileTree.removeContents(of: directory.path, but: "kept")
    try expect(FileTree.names(in: directory.path), equals: ["kept"])
    try FileTree.remove(directory.file("kept"))
    try expect(FileTree.names(in: directory.path), equals: [])
  }
}
