import BenchmarkKit
import TestSupport

@testable import Suites

struct ColdSuiteTests {
  @Test(arguments: benchedEngines)
  func everyWorkloadRunsColdAndWarmAndSaysHowCold(_ engine: EngineName) throws {
    let file = try ran(.cold, on: [engine], documents: 400)
    expect(file.results.count, equals: ColdWorkload.allCases.count * 2)
    for result in file.results {
      let share = try #require(result.metrics[.cachedShare]?.median)
      expect((0.0...1).contains(share))
      if result.parameters["cache"] == "warm" {
        expect(result.metrics[.keptShare] == nil)
        expect(share > 0.9, "\(result.label)")
      } else {
        expect(result.metrics[.keptShare] != nil, "\(result.label)")
      }
    }
    let notes = Suite.cold.notes(file.results)
    expect(notes.count, equals: ColdWorkload.allCases.count + 1, "\(notes)")
    expect(notes.dropFirst().allSatisfy { $0.hasPrefix("\(engine) ") && $0.contains("the warm time") })
  }

  @Test func whatIsDroppedIsGoneAndWhatIsFilledIsThere() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    try FileManager.default.createDirectory(
      atPath: directory.path + "/below", withIntermediateDirectories: true)
    for name in ["one", "below/two"] {
      try Data(repeating: 7, count: 1_000_003).write(to: URL(fileURLWithPath: "\(directory.path)/\(name)"))
    }
    try Data().write(to: URL(fileURLWithPath: directory.path + "/empty"))
    // A hole, of which there is nothing to drop and nothing to fill.
    try Data(repeating: 7, count: 65_536).write(to: URL(fileURLWithPath: directory.path + "/sparse"))
    try #require(truncate(directory.path + "/sparse", 8 << 20) == 0)
    let files = try FileResidency(directory.path)
    expect(files.byteCount, equals: 2_000_006 + (8 << 20))
    files.fill()
    expect(files.residentShare > 0.95)
    files.drop()
    // Some file systems keep everything: those in memory, and those of some containers.
    guard try Self.dropsPages(in: directory.path) else {
      expect((0.0...1).contains(files.residentShare))
      return
    }
    expect(files.residentShare < 0.05)
    // A page that is read comes back, maybe with its neighbours.
    let descriptor = open(directory.path + "/one", O_RDONLY)
    defer { close(descriptor) }
    var byte: UInt8 = 0
    expect(pread(descriptor, &byte, 1, 500_000), equals: 1)
    expect(files.residentShare > 0)
  }

  /// Whether the kernel drops the pages of a file of `directory` when it is told to, and says so.
  private static func dropsPages(in directory: String) throws -> Bool {
    let path = directory + "/probe"
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    try #require(descriptor >= 0)
    defer {
      close(descriptor)
      unlink(path)
    }
    let bytes = [UInt8](repeating: 1, count: 1 << 16)
    try #require(write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0)
    let address = try #require(mmap(nil, bytes.count, PROT_READ, MAP_SHARED, descriptor, 0))
    try #require(address != MAP_FAILED)
    defer { munmap(address, bytes.count) }
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
    // As many as there can be: pages have 4 KiB at least.
    var states = [UInt8](repeating: 0, count: bytes.count / 4_096)
    try #require(mincore(address, bytes.count, &states) == 0)
    return states.allSatisfy { $0 & 1 == 0 }
  }

  @Test func whatCouldNotBeDroppedIsNotCalledCold() throws {
    var file = try ran(.cold, on: [.lmdb], documents: 100) { $0.only = ["read"] }
    try expect(String(decoding: try file.encoded(), as: UTF8.self).contains("kept_share"))
    // As if nothing had been measured.
    file.results = file.results.filter { $0.parameters["cache"] == "warm" }
    for index in file.results.indices { file.results[index].parameters = ["cache": "cold"] }
    let notes = Suite.cold.notes(file.results)
    expect(notes.contains { $0.contains("NOT cold") }, "\(notes)")
  }
}
