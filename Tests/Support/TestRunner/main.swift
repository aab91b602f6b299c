// Runs the tests in several processes, one test after another in each.
//
// Tests block, and Swift Testing runs them on a pool of as many threads as there are cores: in one process
// they wait for each other, and the seconds in its log are those of the queue.

import ChildProcesses
import Foundation
import System

let usage = """
  usage: test-runner BINARY [--jobs N] [--weights FILE] [--save-weights] [--logs DIRECTORY]
                     [--hung-after SECONDS] [--in-memory] [--on-disk REGEX]
                     [--only REGEX] [--filter REGEX] [--skip REGEX]
                     [--strict-filter REGEX --strict-skip REGEX]

  Runs the tests of BINARY, a built test bundle. With --strict-filter, also those on strict engines.
    --only REGEX     of all of these only the tests that match it, too
    --jobs N         processes at the same time (default: four for each core, since tests wait for disks and clocks)
    --weights FILE   the seconds of each suite: the longest begin first. --save-weights writes the file
    --logs DIR       where each process has its log
    --hung-after S   a test that takes longer is killed, with its process, and named; 0: never (default 900)
    --in-memory      the temporary files of tests are in memory, if it has room
    --on-disk REGEX  but not those of the suites that match it
  """

struct Options {
  var binary = ""
  var jobs = 4 * ProcessInfo.processInfo.activeProcessorCount
  var weights: String?
  var savesWeights = false
  var logs = FileManager.default.temporaryDirectory.path
  var hungAfter = 900.0
  var isInMemory = false
  var onDisk: String?
  var only: String?
  var filter: String?
  var skip: String?
  var strictFilter: String?
  var strictSkip: String?

  init(_ arguments: [String]) throws {
    var rest = arguments[...]
    func value<Value>(_ option: String, _ parse: (String) -> Value?) throws -> Value {
      guard let text = rest.popFirst(), let value = parse(text) else {
        throw RunnerError("\(option) needs a value\n\(usage)")
      }
      return value
    }
    // An empty expression is none: the Makefile hands over its variables.
    func expression(_ option: String) throws -> String? {
      let text = try value(option) { $0 }
      return text.isEmpty ? nil : text
    }
    while let argument = rest.popFirst() {
      switch argument {
      case "--jobs": jobs = try value(argument) { Int($0).flatMap { $0 > 0 ? $0 : nil } }
      case "--weights": weights = try value(argument) { $0 }
      case "--save-weights": savesWeights = true
      case "--logs": logs = try value(argument) { $0 }
      case "--hung-after": hungAfter = try value(argument) { Double($0) }
      case "--in-memory": isInMemory = true
      case "--on-disk": onDisk = try expression(argument)
      case "--only": only = try expression(argument)
      case "--filter": filter = try expression(argument)
      case "--skip": skip = try expression(argument)
      case "--strict-filter": strictFilter = try expression(argument)
      case "--strict-skip": strictSkip = try expression(argument)
      case _ where binary.isEmpty && !argument.hasPrefix("-"): binary = argument
      default: throw RunnerError("what is \(argument)?\n\(usage)")
      }
    }
    if binary.isEmpty { throw RunnerError(usage) }
  }

  var runs: [TestRun] {
    var runs = [TestRun(name: "", environment: [:], filters: [only, filter], skip: skip)]
    if let strictFilter {
      // Replications go over BLIP there.
      let environment = ["TOUCHSTONE_STRICT": "1", "TOUCHSTONE_LINK": "blip"]
      runs.append(
        TestRun(
          name: "strict", environment: environment, filters: [only, strictFilter], skip: strictSkip))
    }
    return runs
  }
}

/// Whether somebody wants the runner to end. A signal handler may write nothing else.
nonisolated(unsafe) var isInterrupted: sig_atomic_t = 0

func runTests(_ options: Options) throws -> Bool {
  let begin = ContinuousClock.now
  let weights = try options.weights.map { try Weights(file: $0) } ?? Weights()
  // What is measured has a process of its own.
  let plan = Plan(
    try options.runs.map { ($0, try $0.list(options.binary)) }, weights: weights,
    secondsOfPart: options.savesWeights ? 0 : 20)
  guard plan.testCount > 0 else { throw RunnerError("no test is selected") }
  try FileManager.default.createDirectory(
    atPath: options.logs, withIntermediateDirectories: true)
  let disk = try RunDirectory(in: FileManager.default.temporaryDirectory.path)
  defer { disk.remove() }
  let memory = options.isInMemory ? RunDirectory.inMemory() : nil
  defer { memory?.remove() }
  let onDisk = try options.onDisk.map { try Regex($0) }
  print(
    "\(plan.testCount) tests in \(plan.parts.count) processes, \(options.jobs) at the same time, "
      + "with files \(memory == nil ? "on the disk" : "in memory")")

  var report = Report()
  var waiting = plan.parts.enumerated().map { $0 }[...]
  var running: [RunningPart] = []
  defer { for part in running { part.kill() } }
  while !waiting.isEmpty || !running.isEmpty {
    while running.count < options.jobs, let (number, part) = waiting.popFirst() {
      let log = "\(options.logs)/\(part.run.name.isEmpty ? "test" : part.run.name)-\(number).log"
      let needsDisk = onDisk.map { expression in part.suites.contains { $0.contains(expression) } } ?? false
      let directory = needsDisk ? disk : memory ?? disk
      running.append(
        try RunningPart(
          part, binary: options.binary, log: log, temporary: directory.path,
          shared: (memory ?? disk).path))
    }
    // What was printed is seen at once, in a pipe too.
    fflush(nil)
    usleep(50_000)
    guard isInterrupted == 0 else { throw RunnerError("interrupted") }
    for (index, part) in running.enumerated().reversed() {
      if let ending = part.ending {
        running.remove(at: index)
        report.add(part, ending, of: plan.parts.count)
      } else if options.hungAfter > 0 {
        part.killIfHung(after: options.hungAfter)
      }
    }
  }
  report.end(seconds: (ContinuousClock.now - begin) / .seconds(1))
  if options.savesWeights, let file = options.weights {
    try report.weights.write(to: file)
  }
  return !report.hasFailed
}

// Not in a process group of the terminal, the processes wouldn't hear of Ctrl-C.
for signal in [SIGINT, SIGTERM] { Glibc.signal(signal) { _ in isInterrupted = 1 } }
do {
  exit(try runTests(try Options(Array(CommandLine.arguments.dropFirst()))) ? 0 : 1)
} catch {
  FileHandle.standardError.write(Data("test-runner: \(error)\n".utf8))
  exit(2)
}
