import ChildProcesses
import Expectations
import Foundation
import Testing

@testable import Datasets

/// Lines come out whole and numbered, from plain and compressed files, and damage is told by its line.
struct LineReaderTests {
  private func lines(_ path: String, maximum: Int = LineReader.defaultMaximumLineBytes) throws -> [String] {
    let reader = try LineReader(path: path, maximumLineBytes: maximum)
    var lines: [String] = []
    while let line = try reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
    return lines
  }

  private func expectLines(_ path: String, _ expected: [String]) throws {
    try expect(lines(path), equals: expected)
  }

  private func fault(_ path: String, maximum: Int = LineReader.defaultMaximumLineBytes) -> DatasetError? {
    do {
      _ = try lines(path, maximum: maximum)
      return nil
    } catch { return error as? DatasetError }
  }

  @Test(arguments: ["a\nb\n", "a\nb", "a\r\nb\r\n", "\n\na\n \t\nb\n\n", "\u{FEFF}a\nb\n"])
  func lineEndsBlankLinesAndByteOrderMark(_ text: String) throws {
    try withFile(Array(text.utf8)) { path in try expectLines(path, ["a", "b"]) }
    try withFile(try gzip(Array(text.utf8))) { path in try expectLines(path, ["a", "b"]) }
  }

  @Test(arguments: [[], [0x0A], [0x1F], [0x1F, 0x0A]] as [[UInt8]])
  func tinyFiles(_ bytes: [UInt8]) throws {
    try withFile(bytes) { path throws in
      try expect(lines(path).count, equals: (bytes.contains(0x1F) ? 1 : 0))
    }
  }

  @Test func lineNumbersCountBlankLines() throws {
    try withFile(Array("\n\na\n\nb\n".utf8)) { path in
      let reader = try LineReader(path: path)
      _ = try reader.next()
      expect(reader.lineNumber, equals: 3)
      _ = try reader.next()
      expect(reader.lineNumber, equals: 5)
    }
  }

  @Test func linesOfManyLengthsArriveUnchanged() throws {
    var random = SeededRandom(seed: 11)
    var expected: [String] = []
    for _ in 0..<400 {
      let length = 1 + random.skewed(below: random.chance(5) ? 900_000 : 3_000)
      let letter = String(UnicodeScalar(0x61 + UInt8(random.below(26))))
      expected.append(String(repeating: letter, count: length))
    }
    let text = Array((expected.joined(separator: "\n") + "\n").utf8)
    try withFile(text) { path in try expectLines(path, expected) }
    try withFile(try gzip(text)) { path in try expectLines(path, expected) }
  }

  @Test func lineOfTwentyMegabytes() throws {
    let long = [UInt8](repeating: 0x78, count: 20 << 20)
    try withFile(try gzip(Array("a\n".utf8) + long + Array("\nb\n".utf8))) { path in
      let reader = try LineReader(path: path)
      try expect(reader.next()?.count, equals: 1)
      try expect(reader.next()?.count, equals: 20 << 20)
      try expect(reader.next()?.count, equals: 1)
      try expect(reader.next() == nil)
    }
  }

  @Test func lineOverTheLimitIsRefusedByNumber() throws {
    try withFile(Array("a\n".utf8) + [UInt8](repeating: 0x78, count: 2_000_000)) { path in
      let fault = fault(path, maximum: 1_000_000)
      expect(fault?.code, equals: .lineTooLong)
      expect(fault?.line, equals: 2)
    }
    try withFile(Array("abcd\nabcde\n".utf8)) { path in
      expect(fault(path, maximum: 4)?.line, equals: 2)
    }
  }

  @Test func severalGzipMembersAreOneStream() throws {
    let bytes = try gzip(Array("a\nb".utf8)) + gzip([]) + gzip(Array("c\nd\n".utf8)) + [0, 0, 0, 0]
    try withFile(bytes) { path in try expectLines(path, ["a", "bc", "d"]) }
  }

  @Test func truncatedGzipNamesTheLine() throws {
    // Random letters don't compress, so half of the file holds about half of the lines.
    var random = SeededRandom(seed: 5)
    let text = (0..<2_000).map { _ in String(random.next(), radix: 36) }.joined(separator: "\n")
    let whole = try gzip(Array(text.utf8))
    for count in [11, whole.count / 2, whole.count - 9, whole.count - 8, whole.count - 1] {
      try withFile(Array(whole[..<count])) { path in
        let fault = fault(path)
        expect(fault?.code, equals: .truncated, "\(count) of \(whole.count) bytes")
        expect(fault?.path, equals: path)
        if count == whole.count / 2 { expect((500..<1_500).contains(fault?.line ?? 0)) }
      }
    }
  }

  @Test func corruptGzipIsToldFromTruncated() throws {
    var random = SeededRandom(seed: 6)
    let text = (0..<2_000).map { _ in String(random.next(), radix: 36) }.joined(separator: "\n")
    let whole = try gzip(Array(text.utf8))
    // The checksum, the length, the compression method.
    for position in [whole.count - 6, whole.count - 2, 2] {
      var damaged = whole
      damaged[position] ^= 0xFF
      try withFile(damaged) { path in expect(fault(path)?.code, equals: .corrupt, "byte \(position)") }
    }
    try withFile(whole + Array("more".utf8)) { path in expect(fault(path)?.code, equals: .corrupt) }
  }

  @Test func missingFileIsNamed() {
    let fault = fault("/nowhere/at/all.jsonl")
    expect(fault?.code, equals: .ioError)
    expect(fault?.description.contains("/nowhere/at/all.jsonl"), equals: true)
  }

  @Test(arguments: [ByteWriter.Compression.none, .gzip(), .gzip(level: 1)])
  func writtenLinesReadBack(_ compression: ByteWriter.Compression) throws {
    try withFile([]) { path in
      var random = SeededRandom(seed: 12)
      let expected =
        (0..<3_000).map { "\($0) \(String(repeating: "y", count: random.skewed(below: 3_000)))" }
        + [String(repeating: "z", count: 3 << 20)]
      let writer = try ByteWriter(path: path, compression: compression)
      for line in expected { try Array(line.utf8).withUnsafeBytes { try writer.writeLine($0) } }
      try writer.finish()
      try expectLines(path, expected)
      expect(writer.byteCount, equals: expected.reduce(0) { $0 + $1.utf8.count + 1 })
    }
  }

  @Test func emptyGzipFileReadsBack() throws {
    try withFile([]) { path in
      let writer = try ByteWriter(path: path, compression: .gzip())
      try writer.finish()
      try expect(Data(contentsOf: URL(fileURLWithPath: path)).count, equals: 20)
      try expectLines(path, [])
    }
  }

  @Test func gzipFilesAreReadableByGzip() throws {
    try withFile([]) { path in
      let writer = try ByteWriter(path: path, compression: .gzip())
      try Array("hello\n".utf8).withUnsafeBytes { try writer.write($0) }
      try writer.finish()
      let process = try ChildProcess(ProgramLaunch("/bin/gzip", ["-dc"]), input: .file(path))
      try expect(process.wait(), equals: .exited(0))
      expect(process.outputText, equals: "hello\n")
    }
  }
}

/// The bytes as one gzip member.
func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
  let path = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
  defer { try? FileManager.default.removeItem(atPath: path) }
  let writer = try ByteWriter(path: path, compression: .gzip())
  try bytes.withUnsafeBytes { try writer.write($0) }
  try writer.finish()
  return Array(try Data(contentsOf: URL(fileURLWithPath: path)))
}

/// Runs `body` with the path of a file that holds `bytes`.
func withFile(_ bytes: [UInt8], _ body: (String) throws -> Void) throws {
  let url = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
  try Data(bytes).write(to: url)
  defer { try? FileManager.default.removeItem(at: url) }
  try body(url.path)
}
