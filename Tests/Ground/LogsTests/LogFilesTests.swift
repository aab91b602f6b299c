import Foundation
import Storage
import TestTools
import Testing

@testable import Logs

@Suite("Log files") struct LogFilesTests {
  @Test("files are rotated by size, and the oldest are removed")
  func rotation() throws {
    try withTemporaryDirectory { directory in
      let other = directory + "/touchstone-notes.log"
      try "mine".write(toFile: other, atomically: true, encoding: .utf8)
      let files = try LogFiles(directory: directory + "/logs", maximumFileBytes: 4_096, maximumFiles: 3)
      expect(files.files == [] && files.currentFile == nil)
      for number in 0..<500 { files.write(entry("line \(number)")) }
      expect(files.files.count, equals: 3)
      expect(files.files.last, equals: files.currentFile)
      var numbers: [Int] = []
      for file in files.files {
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        expect(attributes[.size] as? Int ?? 0 <= 4_096)
        expect(attributes[.posixPermissions] as? Int, equals: 0o600)
        numbers += try wholeLines(file).compactMap { Int($0.split(separator: " ").last ?? "") }
      }
      expect(numbers == Array((500 - numbers.count)..<500) && numbers.count > 50)
      // A longer entry has a file of its own.
      files.write(entry(String(repeating: "x", count: 6_000)))
      files.write(entry("after"))
      try expect(wholeLines(#require(files.files.last)).count, equals: 1)
      try expect(wholeLines(files.files[1]).count, equals: 1)
      expect(FileManager.default.fileExists(atPath: other))
    }
  }

  @Test("files that are too old go, but none that is being written, and none of another name")
  func age() throws {
    try withTemporaryDirectory { directory in
      func make(_ name: String, daysAgo: Double) throws {
        let path = directory + "/" + name
        try "old\n".write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes(
          [.modificationDate: Date(timeIntervalSinceNow: -daysAgo * 86_400)], ofItemAtPath: path)
      }
      try make("app-20200101T000000000Z-1-1.log", daysAgo: 40)
      try make("app-20200101T000000000Z-2-1.log", daysAgo: 10)
      try make("app-20200101T000000000-2-1.log", daysAgo: 40)
      try make("app-2-20200101T000000000Z-2-1.log", daysAgo: 40)
      try make("touchstone-20200101T000000000Z-1-1.log", daysAgo: 40)
      let busy = try LogFiles(directory: directory, name: "app", maximumAge: nil)
      busy.write(entry("busy"))
      let path = try #require(busy.currentFile)
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -40 * 86_400)], ofItemAtPath: path)
      let files = try LogFiles(directory: directory, name: "app", maximumAge: .seconds(30 * 86_400))
      files.write(entry("new"))
      expect(FileManager.default.fileExists(atPath: path))
      let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
      expect(!names.contains("app-20200101T000000000Z-1-1.log"))
      expect(names.count, equals: 6, "\(names)")
      expect(files.files.count, equals: 3)
    }
  }

  @Test("a file that someone removes is made again")
  func removed() throws {
    try withTemporaryDirectory { directory in
      let files = try LogFiles(directory: directory)
      files.write(entry("one"))
      try FileManager.default.removeItem(atPath: #require(files.currentFile))
      files.write(entry("two", .error))
      try expect(wholeLines(#require(files.files.first)).count, equals: 1)
      files.flush()
      try expect(storageCode { _ = try LogFiles(directory: directory + "/a/b") }, equals: .notFound)
      try expect(
        storageCode { _ = try LogFiles(directory: directory, name: "a/b") }, equals: .invalidArgument)
      try expect(
        storageCode { _ = try LogFiles(directory: directory, maximumFiles: 0) }, equals: .invalidArgument)
      try expect(storageCode { _ = try LogFiles(directory: #require(files.currentFile)) }, equals: .notFound)
    }
  }

  @Test("a directory that is gone loses entries, and says so once to the other sinks")
  func lost() throws {
    try withTemporaryDirectory { directory in
      let logs = directory + "/logs"
      let files = try LogFiles(directory: logs)
      files.write(entry("before"))
      try FileManager.default.removeItem(atPath: logs)
      let log = LogRouter()
      let told = Lock(0)
      let sink = FunctionSink { entry in
        if entry.message.contains(logs), entry.message.contains("are being lost") {
          told.withLock { $0 += 1 }
        }
      }
      log.add(sink, LogLevels(.info))
      log.add(files, LogLevels(.info))
      for _ in 0..<5 { log.write(.info, .network, nil, { "lost" }) }
      log.flush()
      expect(told.withLock { $0 }, equals: 1)
      try FileManager.default.createDirectory(atPath: logs, withIntermediateDirectories: false)
      log.write(.info, .network, nil, { "found again" })
      log.remove(files)
      log.remove(sink)
      let lines = try wholeLines(#require(files.files.first))
      let note = try #require(lines.first { $0.contains("log entries were lost") })
      expect(note.contains(" warning "))
      expect(lines.contains { $0.hasSuffix("found again") })
    }
  }

  @Test("on a full disk lines are whole or missing, and the process goes on")
  func fullDisk() throws {
    let directory = TemporaryDirectory()
    let child = try startChild(.ground, "logs", "fill", directory.path)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    let names = try directory.names().filter { $0.hasSuffix(".log") }
    let lines = try names.flatMap { try wholeLines(directory.file($0)) }
    expect(lines.contains { $0.contains("log entries were lost") })
    expect(lines.contains { $0.hasSuffix("after the disk was full") })
    let numbers = lines.filter { $0.contains("number ") }.compactMap {
      Int($0.split(separator: " ").last ?? "")
    }
    expect(numbers == Array(0..<numbers.count) && numbers.count > 10)
    expect(child.errorText.contains("are being lost"))
    expect(child.errorText.components(separatedBy: "are being lost").count, equals: 2)
  }

  @Test("a process that is killed loses no entry that it has written")
  func kill() throws {
    let directory = TemporaryDirectory()
    let child = try startChild(.ground, "logs", "write", directory.path)
    try child.waitForOutput(lines: 200)
    child.kill()
    try child.wait()
    let acknowledged = child.outputText.split(separator: "\n").count
    let files = try LogFiles(directory: directory.path)
    var numbers: [Int] = []
    for file in files.files {
      numbers += try wholeLines(file).compactMap { Int($0.split(separator: " ").last ?? "") }
    }
    expect(numbers, equals: Array(0..<numbers.count))
    expect(numbers.count >= acknowledged && acknowledged >= 200)
  }

  @Test("a closed standard error doesn't end the process")
  func closedPipe() throws {
    let child = try startChild(.ground, "logs", "pipe")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText)")
    expect(child.outputText, equals: "alive\n")
  }

  @Test("the variable TOUCHSTONE_LOG sets the levels of standard error")
  func variable() throws {
    func run(_ levels: String) throws -> String {
      let child = try startChild(.ground, "logs", "levels", environment: ["TOUCHSTONE_LOG": levels])
      try expect(child.wait(), equals: .exited(0))
      return child.errorText
    }
    try expect(run("").contains("a warning"))
    try expect(!run("").contains("an info"))
    try expect(run("info:sync").contains("an info"))
    try expect(run("none"), equals: "")
    let wrong = try run("loud")
    expect(wrong.contains("there is no level 'loud'") && wrong.contains("a warning"))
  }
}
