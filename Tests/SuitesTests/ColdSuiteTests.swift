import BenchmarkKit
import Foundation
import Storage
import Testing
import Touchstone

@testable import Suites

#if canImport(Glibc)
  import Glibc
#endif

struct ColdSuiteTests {
  @Test(arguments: Engines.names)
  func everyWorkloadRunsColdAndWarmAndSaysHowCold(_ engine: EngineName) throws {
    let settings = BenchSettings(
      engines: [try Engines.type(engine)], samples: 1, workDirectory: NSTemporaryDirectory(), documents: 400)
    let file = try BenchRun(settings, version: "0.1.0+test").run([.cold])
    #expect(ResultsSchema.faults(in: try file.encoded()) == [])
    #expect(file.results.count == ColdWorkload.allCases.count * 2)
    for result in file.results {
      let share = try #require(result.metrics[.cachedShare]?.median)
      #expect((0.0...1).contains(share))
      if result.parameters["cache"] == "warm" {
        #expect(result.metrics[.keptShare] == nil)
        #expect(share > 0.9, "\(result.label)")
      } else {
        #expect(result.metrics[.keptShare] != nil, "\(result.label)")
      }
    }
    let notes = Suite.cold.notes(file.results)
    #expect(notes.count == ColdWorkload.allCases.count + 1, "\(notes)")
    #expect(notes.dropFirst().allSatisfy { $0.hasPrefix("\(engine) ") && $0.contains("the warm time") })
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
    let files = try FileResidency(directory.path)
    #expect(files.byteCount == 2_000_006)
    files.fill()
    #expect(files.residentShare == 1)
    files.drop()
    // File systems in memory keep everything.
    let system = Machine.current(directory: directory.path).filesystem
    let isInMemory = system == "tmpfs" || system == "ramfs"
    #expect(files.residentShare == (isInMemory ? 1 : 0))
    // A page that is read comes back, maybe with its neighbours.
    guard !isInMemory else { return }
    let descriptor = open(directory.path + "/one", O_RDONLY)
    defer { close(descriptor) }
    var byte: UInt8 = 0
    #expect(pread(descriptor, &byte, 1, 500_000) == 1)
    #expect(files.residentShare > 0)
  }

  @Test func whatCouldNotBeDroppedIsNotCalledCold() throws {
    let settings = BenchSettings(
      engines: [try Engines.type(.lmdb)], samples: 1, workDirectory: NSTemporaryDirectory(), documents: 100,
      only: ["read"])
    var file = try BenchRun(settings, version: "0.1.0+test").run([.cold])
    let text = String(decoding: try file.encoded(), as: UTF8.self)
    #expect(text.contains("kept_share"))
    // As if nothing had been measured.
    file.results = file.results.filter { $0.parameters["cache"] == "warm" }
    for index in file.results.indices { file.results[index].parameters = ["cache": "cold"] }
    let notes = Suite.cold.notes(file.results)
    #expect(notes.contains { $0.contains("NOT cold") }, "\(notes)")
  }
}
