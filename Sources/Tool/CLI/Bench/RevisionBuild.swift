import BenchmarkKit
import FoundationEssentials
import Storage

/// A build of another revision of the checkout in which this executable was built.
struct RevisionBuild {
  /// The executable of this build.
  let executable: String
  /// The executable of the other revision.
  let oldExecutable: String
  private let checkout: String
  private let worktree: String

  /// Checks out `revision` below `workDirectory` and builds it, which takes minutes the first time. Throws a
  /// `UsageError` if this executable isn't in a checkout, there is no such revision, or the build fails.
  init(_ revision: String, workDirectory: String) throws {
    executable = RunningProgram.path ?? CommandLine.arguments[0]
    let folder = URL(fileURLWithPath: executable).deletingLastPathComponent().path
    let found = try Program.run(named: "git", ["-C", folder, "rev-parse", "--show-toplevel"])
    guard found.status == 0 else {
      throw UsageError("--against: \(folder) isn't in a git checkout")
    }
    checkout = String(found.output.trimming())
    let commit = try Program.run(
      named: "git", ["-C", checkout, "rev-parse", "--verify", "--quiet", revision + "^{commit}"])
    guard commit.status == 0 else { throw UsageError("--against: there is no revision '\(revision)'") }
    let hash = String(commit.output.prefix(12))
    worktree = try TrialDirectory(in: workDirectory).path + "/touchstone"
    let added = try Program.run(
      named: "git", ["-C", checkout, "worktree", "add", "--detach", worktree, hash])
    guard added.status == 0 else { throw UsageError("--against: \(added.output)") }
    // The same build as `make build`. It is kept, so each revision is built only once.
    let scratch = "\(checkout)/.build/against-\(hash)"
    StandardError.line("building \(hash)")
    let built = try Program.run(
      named: "swift",
      [
        "build", "-c", "release", "-Xswiftc", "-enable-testing", "--package-path", worktree, "--scratch-path",
        scratch, "--product", "touchstone",
      ])
    oldExecutable = "\(scratch)/release/touchstone"
    guard built.status == 0 else {
      remove()
      throw UsageError("--against: \(hash) doesn't build: \(built.output.suffix(2_000))")
    }
  }

  /// Removes the checkout. The build is kept for the next time.
  func remove() {
    _ = try? Program.run(named: "git", ["-C", checkout, "worktree", "remove", "--force", worktree])
    try? FileManager.default.removeItem(
      atPath: URL(fileURLWithPath: worktree).deletingLastPathComponent().path)
  }

  /// Runs a `bench` with one of the executables, and returns its results.
  func run(_ executable: String, _ arguments: [String]) throws -> ResultsFile {
    let path = URL(fileURLWithPath: worktree).deletingLastPathComponent().path + "/results.json"
    let ran = try Program.run(executable, arguments + ["--output", path])
    guard ran.status == 0 else { throw UsageError("\(executable): \(ran.output.suffix(500))") }
    return try ResultsFile.read(path)
  }
}
