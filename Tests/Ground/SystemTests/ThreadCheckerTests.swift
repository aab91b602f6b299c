import TestTools
import Testing

@testable import System

@Suite("What belongs to one thread") struct ThreadCheckerTests {
  @Test("may go from one thread to another, one at a time")
  func right() throws {
    let child = try startChild(.ground, "threads", "right")
    try expect(child.wait(), equals: .exited(0), "\(child.errorText)")
    expect(child.outputText, equals: "alive\n")
  }

  @Test(
    "ends the process that uses it on another thread, and is named",
    .enabled(
      if: ThreadChecker.isCompiled, "TOUCHSTONE_CHECKS wasn't set at the build: threads aren't checked"),
    arguments: [
      ("other", "the child's object belongs to thread"), ("two", "the child's object is used by thread"),
      ("leave", "the child's object belongs to thread"), ("workers", "the child's workers is used outside"),
    ])
  func wrong(_ command: String, _ line: String) throws {
    let child = try startChild(.ground, "threads", command)
    try expect(child.wait(), equals: .signalled(SIGABRT), "\(child.outputText)")
    expect(child.errorText.contains("touchstone: wrong thread: \(line)"), "\(child.errorText)")
    expect(child.outputText, equals: "")
  }
}
