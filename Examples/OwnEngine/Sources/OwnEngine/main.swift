// Runs an engine of one's own.
//
//   own-engine conformance     checks every behaviour of the conformance suite
//   own-engine bench           compares it with SQLite and LMDB
//
// The conformance suite starts this program again for work in a separate process.

import BenchmarkKit
import CountingEngine
import Foundation
import StorageConformance
import Suites
import Touchstone

func checkConformance() throws {
  let program = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
  var failures = 0
  for behaviour in ConformanceSuite.behaviours {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    // LMDB trusts the file that it maps.
    let subject = ConformanceSuite.Subject(engine: CountingEngine.type, survivesAnyDamage: false)
    let suite = ConformanceSuite(subject: subject, directory: directory.path, childPath: program)
    do { try suite.run(behaviour) } catch {
      failures += 1
      print("FAILED \(behaviour.name): \(error)")
    }
  }
  print("\(ConformanceSuite.behaviours.count) behaviours, \(failures) failures")
  if failures > 0 { exit(1) }
}

func runBench() throws {
  Engines.register(CountingEngine.type)
  let names = ["sqlite", "lmdb", "counting"]
  let settings = BenchSettings(
    engines: try names.map { try Engines.type(EngineName(rawValue: $0)) }, samples: 3,
    workDirectory: FileManager.default.temporaryDirectory.path, documents: 2_000)
  let file = try BenchRun(settings, version: "own-engine").run([.travel])
  print(ResultsTable(file.results, engines: names).text())
}

switch CommandLine.arguments.dropFirst().first {
case "conformance": try checkConformance()
case "bench": try runBench()
case nil:
  print("usage: own-engine conformance | bench")
  exit(2)
default: ConformanceChild.main(CommandLine.arguments, engines: [CountingEngine.type])
}
