import TestTools
import Testing

@testable import System

#if canImport(Glibc)
  import Glibc
#endif

@Suite("The running program") struct RunningProgramTests {
  @Test("its path is absolute, and leads to the file that runs") func path() throws {
    let path = try #require(RunningProgram.path)
    expect(path.utf8.first, equals: UInt8(ascii: "/"))
    var (found, running) = (stat(), stat())
    expect(stat(path, &found), equals: 0)
    expect(stat("/proc/self/exe", &running), equals: 0)
    expect(found.st_dev == running.st_dev && found.st_ino == running.st_ino, "it is the same file")
  }
}
