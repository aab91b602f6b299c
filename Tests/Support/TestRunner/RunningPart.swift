import ChildProcesses
import Foundation
import System

/// A process that runs its part of the tests. Its output is in a log file as it comes.
final class RunningPart {
  let part: Plan.Part
  let log: String
  private let process: SpawnedProcess
  private let begin = ContinuousClock.now
  /// When the log last grew, and to which size.
  private var growth: (bytes: Int, time: ContinuousClock.Instant)
  /// The test that took too long, if the process was killed for that.
  private(set) var hung: String?
  /// The seconds of processor time that the process took, with all that it has started and waited for; 0 until it has ended.
  private(set) var processorSeconds = 0.0

  /// Starts it. Its temporary files are in `temporary`. What processes of the run can share is in `shared`.
  init(_ part: Plan.Part, binary: String, log: String, temporary: String, shared: String) throws {
    self.part = part
    self.log = log
    guard FileManager.default.createFile(atPath: log, contents: nil),
      let file = FileHandle(forWritingAtPath: log)
    else { throw RunnerError("can't write \(log)") }
    var launch = part.run.launch(binary, ["--filter", part.filter])
    launch.environment["TMPDIR"] = temporary
    launch.environment["TOUCHSTONE_SHARED"] = shared
    launch.output = .descriptor(file.fileDescriptor)
    launch.errors = .descriptor(file.fileDescriptor)
    process = try withExtendedLifetime(file) { try SpawnedProcess(launch) }
    growth = (0, begin)
  }

  /// The seconds since its start.
  var seconds: Double { (ContinuousClock.now - begin) / .seconds(1) }

  /// How it ended; nil while it runs.
  var ending: SpawnedProcess.Ending? {
    // The system adds what a process took when somebody has waited for it: here.
    let before = Self.processorSecondsOfEnded
    guard let ending = process.ending else { return nil }
    processorSeconds += Self.processorSecondsOfEnded - before
    return ending
  }

  /// What all processes took that have ended so far.
  private static var processorSecondsOfEnded: Double {
    var usage = rusage()
    getrusage(RUSAGE_CHILDREN.rawValue, &usage)
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1_000_000 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }

  /// What it has said so far.
  var said: TestLog {
    let bytes = FileManager.default.contents(atPath: log) ?? Data()
    return TestLog(Substring(decoding: bytes, as: UTF8.self))
  }

  /// Kills the process with all that it has started, if it has said nothing for `seconds`.
  func killIfHung(after seconds: Double) {
    let size = (try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int) ?? growth.bytes
    if size != growth.bytes { growth = (size, .now) }
    guard hung == nil, growth.time.duration(to: .now) > .seconds(seconds) else { return }
    hung = said.running ?? "before its first test"
    kill()
  }

  /// Kills the process with all that it has started.
  func kill() {
    Glibc.kill(-process.identifier, SIGKILL)
    process.kill()
  }
}
