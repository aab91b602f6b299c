import ChildProcesses
import Foundation
import System

/// An error that ends the runner, as a sentence.
struct RunnerError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// A set of tests that run with the same environment: the ordinary one, or the one on strict engines.
struct TestRun: Sendable {
  /// Empty for the ordinary run. It stands before the names of suites in weights and messages, with a colon.
  let name: String
  /// What this run adds to the environment.
  let environment: [String: String]
  /// Regular expressions: it has the tests that match all of these, where they aren't nil, and not `skip`.
  let filters: [String?]
  let skip: String?

  var prefix: String { name.isEmpty ? "" : name + ":" }

  /// How a process of this run is started.
  func launch(_ binary: String, _ options: [String]) -> ProgramLaunch {
    var launch = ProgramLaunch(
      binary, ["--testing-library", "swift-testing", "--no-parallel"] + options)
    launch.environment["NO_COLOR"] = "1"
    launch.environment.merge(environment) { $1 }
    // Ctrl-C ends the runner, and the runner its processes with all that they have started.
    launch.hasOwnGroup = true
    return launch
  }

  /// The tests of this run, as `Module.Suite/test()`. Swift Testing lists all, whatever the filter.
  func list(_ binary: String) throws -> [String] {
    func expression(_ text: String) throws -> Regex<AnyRegexOutput> {
      do { return try Regex(text) } catch {
        throw RunnerError("not a regular expression: \(text): \(error)")
      }
    }
    let filters = try filters.compactMap { try $0.map(expression) }
    let skip = try skip.map(expression)
    let process = try ChildProcess(launch(binary, ["--list-tests"]))
    guard try process.wait(seconds: nil) == .exited(0) else {
      throw RunnerError("\(binary) can't list its tests: \(process.errorText.suffix(2_000))")
    }
    return process.outputText.split(separator: "\n").map(String.init).filter { test in
      filters.allSatisfy { test.contains($0) } && !(skip.map { test.contains($0) } ?? false)
    }
  }
}
