import Foundation
import Storage
import Synchronization
import TestTools
import Testing

@testable import Logs

@Suite("Levels, entries and sinks") struct LogTests {
  @Test("levels are read from text, and printed so that they can be read")
  func levels() throws {
    try expect(LogLevels("warning"), equals: LogLevels(.warning))
    var levels = LogLevels(.warning)
    levels.set(.verbose, for: [.query, .index])
    try expect(LogLevels("warning verbose:query,index"), equals: levels)
    try expect(LogLevels(levels.description), equals: levels)
    try expect(LogLevels("debug:sync none:all"), equals: LogLevels(.none))
    for text in ["", " ", "loud", "info:", "info:query,", "info:disk", ":query", "info:query:index"] {
      try expect(storageCode { _ = try LogLevels(text) }, equals: .invalidArgument, "\(text)")
    }
  }

  @Test("an entry that no sink wants isn't formatted")
  func lazy() {
    let log = LogRouter()
    let made = Atomic<Int>(0)
    func message() -> String {
      made.add(1, ordering: .relaxed)
      return "text"
    }
    let sink = FunctionSink { _ in }
    log.write(.info, .network, nil, message)
    expect(made.load(ordering: .relaxed), equals: 0)
    log.add(sink, LogLevels(.warning))
    log.write(.info, .network, nil, message)
    expect(made.load(ordering: .relaxed), equals: 0)
    log.setLevel(.info, for: [.network], of: sink)
    expect(log.isWritten(.info, .network) && !log.isWritten(.verbose, .network))
    log.write(.info, .network, nil, message)
    expect(made.load(ordering: .relaxed), equals: 1)
    expect(log.levels(of: sink)?[.network] == .info && log.levels(of: sink)?[.query] == .warning)
    log.remove(sink)
    log.write(.info, .network, nil, message)
    expect(made.load(ordering: .relaxed), equals: 1)
    expect(log.levels(of: sink) == nil)
  }

  @Test("an entry is one line, whatever its names are")
  func escapes() {
    let forged = "a\n2026-01-01T00:00:00.000Z error database [1] -: forged\u{202E}\u{7F}\\"
    let text = entry(forged, details: ["\tplan\n"], database: "/a b:c\n").text
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    expect(lines.count, equals: 2)
    expect(
      lines[0].hasSuffix(
        #" info database [\#(getpid())] /a\x20b\x3ac\n: a\n2026-01-01T00:00:00.000Z error database [1] -: forged\u{202e}\u{7f}\\"#
      ), "\(lines[0])")
    expect(lines[1], equals: #"\#u{9}\tplan\n"#, "\(lines[1])")
    let date = LogEntry(
      date: Date(timeIntervalSince1970: 1_763_935_200.5), level: .info, domain: .query, database: nil,
      message: "x")
    expect(date.text, equals: "2025-11-23T22:00:00.500Z info query [\(getpid())] -: x")
    expect(
      LogEntry(date: .distantFuture, level: .info, domain: .query, database: nil, message: "x").text
        .hasPrefix("4001-"))
    // Long texts are cut between characters.
    let long = entry(String(repeating: "é", count: 20_000), details: Array(repeating: "d", count: 1_000))
    expect(long.message.utf8.count <= LogEntry.maximumTextBytes + 3 && long.message.hasSuffix("é…"))
    expect(long.details.count, equals: LogEntry.maximumDetails)
  }

  @Test("a sink gets the entries of many threads whole, each thread's in order")
  func threads() throws {
    let log = LogRouter()
    let threads = 4
    let count = 500
    let received = Lock<[String]>([])
    let sink = FunctionSink { entry in
      if entry.message.hasPrefix("many ") { received.withLock { $0.append(entry.message) } }
    }
    try withTemporaryDirectory { directory in
      let files = try LogFiles(directory: directory, maximumFileBytes: 16_384, maximumFiles: 1_000)
      log.add(files, LogLevels(.info))
      log.add(sink, LogLevels(.info))
      try onThreads(threads) { thread in
        for number in 0..<count { log.write(.info, .network, nil, { "many \(thread) \(number)" }) }
      }
      log.flush()
      var inFiles: [String] = []
      for file in files.files {
        let size = try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int
        expect(size ?? 0 <= 16_384)
        inFiles += try wholeLines(file).compactMap { line in
          line.range(of: "many ").map { String(line[$0.lowerBound...]) }
        }
      }
      expect(files.files.count > 5)
      for messages in [received.withLock { $0 }, inFiles] {
        expect(messages.count, equals: threads * count)
        for thread in 0..<threads {
          let numbers = messages.filter { $0.hasPrefix("many \(thread) ") }.map {
            $0.split(separator: " ")[2]
          }
          expect(numbers, equals: (0..<count).map { "\($0)"[...] })
        }
      }
    }
  }

  @Test("a sink that blocks holds up nobody, and is told what it lost")
  func slowSink() {
    let log = LogRouter()
    let go = CountingSemaphore()
    let received = Lock<[String]>([])
    let sink = FunctionSink { entry in
      if entry.message.hasPrefix("first") { go.wait() }
      if entry.domain == .network || entry.message.contains("dropped") {
        received.withLock { $0.append(String(entry.message.prefix(20))) }
      }
    }
    log.add(sink, LogLevels(.info))
    log.write(.info, .network, nil, { "first" })
    let text = String(repeating: "x", count: 10_000)
    for _ in 0..<1_000 { log.write(.info, .network, nil, { text }) }
    go.signal()
    log.remove(sink)
    let messages = received.withLock { $0 }
    expect((300..<900).contains(messages.count), "\(messages.count)")
    expect(messages.contains { $0.hasSuffix("log entries were d") || $0.contains("log entries") })
  }

  @Test("a sink that logs isn't called for what it logs")
  func loggingSink() throws {
    let log = LogRouter()
    let calls = Atomic<Int>(0)
    let sink = FunctionSink { entry in
      guard entry.message.hasPrefix("outer") || entry.message == "inner" else { return }
      calls.add(1, ordering: .relaxed)
      log.write(.info, .network, nil, { "inner" })
      log.flush()
    }
    try withTemporaryDirectory { directory in
      let files = try LogFiles(directory: directory)
      log.add(files, LogLevels(.info))
      log.add(sink, LogLevels(.info))
      for _ in 0..<10 { log.write(.info, .network, nil, { "outer" }) }
      log.flush()
      log.remove(sink)
      log.remove(files)
      expect(calls.load(ordering: .relaxed), equals: 10)
      try expect(wholeLines(#require(files.files.first)).count { $0.hasSuffix("inner") }, equals: 10)
    }
  }
}
