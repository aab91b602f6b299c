import ChildProcesses
import Expectations
import Foundation
import Testing

@testable import Scripts

/// Random numbers from a fixed seed.
private struct Generator: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    var mixed = state
    mixed ^= mixed >> 33
    mixed = mixed &* 0xFF51_AFD7_ED55_8CCD
    return mixed ^ mixed >> 33
  }
}

@Suite("Hostile frames") struct HostileFrameTests {
  private static func frame(_ type: UInt8, _ ticket: UInt32, _ payload: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(u32: UInt32(payload.count + 5))
    bytes.append(type)
    bytes.append(u32: ticket)
    return bytes + payload
  }

  /// Requests of all types that are right, for the context 1.
  private static var requests: [[UInt8]] {
    var open: [UInt8] = []
    open.append(u32: 1)
    open.append(text: design(["x": "function (doc) { emit(doc._id, doc) }"]))
    var map: [UInt8] = []
    map.append(u32: 1)
    map.append(u16: 1)
    map.append(u16: 0)
    map.append(u32: 2)
    map.append(text: Array(#"{"_id":"a"}"#.utf8))
    map.append(text: Array(#"{"_id":"é"}"#.utf8))
    var reduce: [UInt8] = []
    reduce.append(u32: 1)
    reduce.append(u16: 0)
    reduce.append(0)
    reduce.append(text: Array("[]".utf8))
    reduce.append(text: Array("[1]".utf8))
    var filter: [UInt8] = []
    filter.append(u32: 1)
    filter.append(1)
    filter.append(text: Array("x".utf8))
    filter.append(text: [])
    filter.append(u32: 1)
    filter.append(text: Array("{}".utf8))
    var validate: [UInt8] = []
    validate.append(u32: 1)
    for _ in 0..<4 { validate.append(text: Array("{}".utf8)) }
    return [
      frame(1, 1, open), frame(3, 2, map), frame(4, 3, reduce), frame(5, 4, filter), frame(6, 5, validate),
    ]
  }

  /// Runs the program on an input, and returns its answers and how it ended.
  private func run(_ input: [UInt8]) throws -> (output: [UInt8], ending: ChildProcess.Ending) {
    let process = try start("--memory", "\(64 << 20)", "--seconds", "2", "--grace", "1")
    try process.write(input)
    let ending = try process.end()
    return (process.outputSoFar, ending)
  }

  private func start(_ arguments: String...) throws -> ChildProcess {
    try ChildProcess(ProgramLaunch(try ScriptProcess.path(nil), arguments), input: .written)
  }

  @Test("The program answers damaged requests with errors, or ends; it never crashes")
  func damagedRequests() throws {
    var generator = Generator(state: 19)
    let whole = try run(Self.requests.flatMap { $0 })
    expect(whole.ending, equals: .exited(0))
    for round in 0..<150 {
      var requests = Self.requests
      // Several damaged requests a run: their bytes change, and their lengths stay right or not.
      for index in requests.indices where index > 0 || round % 4 == 0 {
        for _ in 0..<Int.random(in: 0...4, using: &generator) {
          let low = round % 3 == 0 ? 0 : 5
          let place = Int.random(in: low..<requests[index].count, using: &generator)
          requests[index][place] =
            Bool.random(using: &generator) ? UInt8.random(in: 0...255, using: &generator) : 0xFF
        }
        if round % 5 == 1 { requests[index].removeLast(Int.random(in: 0..<9, using: &generator)) }
      }
      let ended = try run(requests.flatMap { $0 })
      expect([.exited(0), .exited(2)].contains(ended.ending), "round \(round): \(ended.ending)")
    }
  }

  @Test("The program ends when its host does, also while a script runs", arguments: [true, false])
  func endOfHost(runs: Bool) throws {
    let process = try start("--seconds", "60")
    var open: [UInt8] = []
    open.append(u32: 1)
    open.append(text: design(["x": "function (doc) { while (true); }"]))
    try process.write(Self.frame(1, 1, open))
    if runs { try process.write(Self.requests[1]) }
    Thread.sleep(forTimeInterval: 0.2)
    expect(process.ending == nil)
    process.endInput()
    let start = Date()
    try expect(process.wait(), equals: .exited(0))
    expect(Date().timeIntervalSince(start) < 10)
  }

  @Test("Random bytes end the program with an error", arguments: 0..<20)
  func randomRequests(seed: UInt64) throws {
    var generator = Generator(state: seed)
    let bytes = (0..<Int.random(in: 1...3000, using: &generator)).map { _ in
      UInt8.random(in: 0...255, using: &generator)
    }
    let ended = try run(bytes)
    expect(ended.ending, equals: .exited(2))
  }

  @Test(
    "Wrong options end the program",
    arguments: [["--memory"], ["--memory", "5"], ["--x", "1"], ["--seconds", "-1"]])
  func options(arguments: [String]) throws {
    let process = try ChildProcess(ProgramLaunch(try ScriptProcess.path(nil), arguments))
    try expect(process.wait(), equals: .exited(64))
  }

  /// The frames with which a program answers the opening of one view and a batch of one document.
  private static var answers: [[UInt8]] {
    var hello: [UInt8] = []
    hello.append(u32: 0x534A_5354)
    hello.append(u16: 3)
    // Without a filter of system calls, which the log tells.
    hello.append(0)
    hello.append(text: [])
    var opened: [UInt8] = [0]
    opened.append(u32: 1)
    opened.append(text: Array("x".utf8))
    opened.append(0)
    opened.append(text: [])
    var rows: [UInt8] = []
    rows.append(u32: 0)
    rows.append(u32: 1)
    rows.append(0)
    rows.append(u32: 1)
    rows.append(0)
    rows.append(text: Array("1".utf8))
    rows.append(text: Array("2".utf8))
    rows.append(u16: 1)
    rows.append(text: Array("log".utf8))
    var mapped: [UInt8] = []
    mapped.append(u32: 1)
    return [frame(0x80, 0, hello), frame(0x81, 1, opened), frame(0x82, 2, rows), frame(0x83, 2, mapped)]
  }

  /// A program that says what is in the file `answers` beside the link that it is started by.
  private static let sayer = Result {
    let program = FileManager.default.temporaryDirectory.appendingPathComponent("says-answers-\(getpid())")
    try Data("#!/bin/sh\n/bin/cat \"${0%/*}/answers\"\n/bin/sleep 0.05\n".utf8).write(to: program)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.path)
    // Children that other tests start may hold it open for a moment, and then it can't be started.
    Thread.sleep(forTimeInterval: 0.3)
    return program
  }

  /// Maps one document with a program that says these bytes, whatever it is asked.
  private func map(with answers: [UInt8]) throws -> ScriptRows {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try Data(answers).write(to: folder.appendingPathComponent("answers"))
    let program = folder.appendingPathComponent("program")
    try FileManager.default.createSymbolicLink(at: program, withDestinationURL: Self.sayer.get())
    let process = ScriptProcess(program: program.path, limits: ScriptLimits(callSeconds: 0.2))
    let context = try JavaScript(process: process).open(designDocument: Array("{}".utf8))
    return try context.map(batch("{}"), views: [0])
  }

  @Test("The host takes right answers, and gives a typed error for damaged ones")
  func damagedAnswers() throws {
    let rows = try map(with: Self.answers.flatMap { $0 })
    try expect(rows.rows(), equals: [TestRow("1", "2")])
    expect(rows.log(document: 0, view: 0), equals: ["log"])
    var generator = Generator(state: 7)
    for _ in 0..<40 {
      var answers = Self.answers
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let frame = Int.random(in: 0..<answers.count, using: &generator)
        let place = Int.random(in: 0..<answers[frame].count, using: &generator)
        answers[frame][place] = UInt8.random(in: 0...255, using: &generator)
      }
      do { _ = try map(with: answers.flatMap { $0 }) } catch { expect(error is ScriptError, "\(error)") }
    }
  }

  @Test("Damaged rows are refused or read within their bytes")
  func damagedRows() throws {
    var generator = Generator(state: 11)
    let whole = Array(Self.answers[2].dropFirst(4))
    for _ in 0..<20_000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        bytes[Int.random(in: 5..<bytes.count, using: &generator)] = UInt8.random(
          in: 0...255, using: &generator)
      }
      if Bool.random(using: &generator) {
        bytes.removeLast(Int.random(in: 0..<bytes.count - 5, using: &generator))
      }
      var rows = ScriptRows(viewCount: 1)
      do { try rows.append(AnswerFrame(kind: .rows, ticket: 2, bytes: bytes)) } catch {
        expect(error is FrameFault)
        continue
      }
      for document in 0..<rows.documentCount {
        _ = try rows.rows(document)
        _ = rows.log(document: document, view: 0)
        _ = rows.exception(document: document, view: 0)
      }
    }
  }
}
