import ChildProcesses
import Expectations
import Foundation
import Testing

@Suite struct ChildProcessTests {
  private func shell(
    _ script: String, input: ChildProcess.Input = .empty, mixesErrors: Bool = false
  ) throws -> ChildProcess {
    try ChildProcess(ProgramLaunch("/bin/sh", ["-c", script]), input: input, mixesErrors: mixesErrors)
  }

  @Test func anEndingIsTold() throws {
    try expect(shell("exit 7").wait(), equals: .exited(7))
    let killed = try shell("kill -9 $$")
    try expect(killed.wait() == .signalled(SIGKILL) && killed.ending == .signalled(SIGKILL))
    // Again, and without a deadline.
    try expect(killed.wait(), equals: .signalled(SIGKILL))
    try expect(killed.wait(seconds: nil).shellStatus, equals: 128 + SIGKILL)
  }

  @Test func aProgramThatIsNotThereIsTold() throws {
    let failure = #expect(throws: SpawnedProcess.Failure.self) {
      try SpawnedProcess(ProgramLaunch("/nonexistent"))
    }
    expect(failure?.code == ENOENT && failure?.description.contains("/nonexistent") == true)
  }

  @Test func outputAndErrorsAreCollected() throws {
    let apart = try shell("echo said; echo complained >&2")
    try apart.wait()
    expect(apart.outputText == "said\n" && apart.errorText == "complained\n")
    let mixed = try shell("echo said; echo complained >&2", mixesErrors: true)
    try mixed.wait()
    expect(mixed.outputText == "said\ncomplained\n" && mixed.errorText.isEmpty)
    // More than any buffer between them holds, on both streams.
    let long = try shell("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero")
    try long.wait()
    expect(long.outputSoFar.count == 3_000_000 && long.errorText.utf8.count == 3_000_000)
  }

  @Test func linesAreToldByTheirNumbers() throws {
    let process = try shell("printf 'one\\n\\nthr'; sleep 0.05; printf 'ee\\npart'")
    try process.waitForOutput(lines: 3)
    expect((0..<3).map { process.line($0) }, equals: ["one", "", "three"])
    try process.wait()
    expect(process.line(3) == nil && process.line(-1) == nil)
    expect(process.wholeLines, equals: ["one", "three"])
  }

  @Test func whatIsWrittenIsRead() throws {
    let process = try shell("cat", input: .written)
    try process.write([UInt8](repeating: 0x61, count: 3_000_000))
    try process.waitForOutput(bytes: 1)
    expect(process.ending == nil)
    try expect(process.end(), equals: .exited(0))
    expect(process.outputSoFar.count, equals: 3_000_000)
  }

  @Test func whatAnEndedProcessDoesNotTakeIsLost() throws {
    let process = try shell("exit 0", input: .written)
    try process.wait()
    // A write to a pipe would end this process with SIGPIPE.
    try process.write([UInt8](repeating: 0x61, count: 3_000_000))
  }

  @Test func aProcessThatHangsIsKilledAtItsDeadline() throws {
    // With its output open, and closed.
    for script in ["exec sleep 1000", "exec >&- 2>&-; exec sleep 1000"] {
      let process = try shell(script)
      #expect(throws: ChildProcess.Failure.self) { try process.wait(seconds: 0.2) }
      try expect(process.wait(), equals: .signalled(SIGKILL))
    }
    let silent = try shell("exec sleep 1000")
    #expect(throws: ChildProcess.Failure.self) { try silent.waitForOutput(seconds: 0.2) }
    try expect(silent.wait(), equals: .signalled(SIGKILL))
    let deaf = try shell("exec sleep 1000", input: .written)
    #expect(throws: ChildProcess.Failure.self) {
      try deaf.write([UInt8](repeating: 0x61, count: 3_000_000), seconds: 0.2)
    }
    try expect(deaf.wait(), equals: .signalled(SIGKILL))
  }

  @Test func aProcessEndsWithItsObject() throws {
    var process: ChildProcess? = try shell("exec sleep 1000")
    let identifier = try #require(process?.identifier)
    process = nil
    expect(waitpid(identifier, nil, WNOHANG) == -1 && errno == ECHILD)
  }

  @Test func whoseEndingAnotherTookIsNotWaitedForNorKilled() throws {
    let process = try SpawnedProcess(ProgramLaunch("/bin/true"))
    while waitpid(process.identifier, nil, 0) < 0, errno == EINTR {}
    expect(process.wait(), equals: .unknown)
    expect(process.wait(seconds: 1), equals: .unknown)
  }

  @Test func moreThanAThousandOpenFilesAreNoHindrance() throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = max(limit.rlim_cur, min(limit.rlim_max, 4_096))
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    // `select` can't watch descriptors above 1,023.
    let files = (0..<1_100).map { _ in open("/dev/null", O_RDONLY | O_CLOEXEC) }
    defer { for file in files where file >= 0 { close(file) } }
    guard files.allSatisfy({ $0 >= 0 }) else {
      print("skipped moreThanAThousandOpenFilesAreNoHindrance: the process may not open enough files")
      return
    }
    let process = try shell("cat; exit 3", input: .written)
    try process.write(Array("said\n".utf8))
    try expect(process.end(), equals: .exited(3))
    expect(process.outputText, equals: "said\n")
    expect(waitpid(process.identifier, nil, WNOHANG), equals: -1)
  }

  @Test func noSignalIsBlockedOrIgnoredInAChild() throws {
    var all = sigset_t()
    var before = sigset_t()
    sigemptyset(&all)
    sigaddset(&all, SIGTERM)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    let process = Result { try shell("grep -E 'Sig(Blk|Ign)' /proc/self/status") }
    pthread_sigmask(SIG_SETMASK, &before, nil)
    try process.get().wait()
    let masks = try process.get().wholeLines.compactMap { UInt64($0.suffix(16), radix: 16) }
    // The C library has two signals behind these for itself.
    expect(masks.count == 2 && masks.allSatisfy { $0 & 0x7FFF_FFFF == 0 }, "\(masks)")
  }

  @Test func aChildHoldsNothingOfTheOthers() throws {
    let first = try shell("cat", input: .written)
    let second = try shell("exec sleep 1000")
    // If the second held our end of the first's input, that would have no end.
    try expect(first.end(), equals: .exited(0))
    second.kill(SIGTERM)
    try expect(second.wait(), equals: .signalled(SIGTERM))
  }
}
