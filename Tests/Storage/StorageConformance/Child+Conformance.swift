import Foundation
import Storage

extension Child {
  /// `conformance DIRECTORY SEED` runs every behaviour that needs no other process. It is for tools such as
  /// valgrind that observe this process. Failures are only reported, because the tests check the behaviours
  /// themselves.
  func conformance() throws {
    for behaviour in ConformanceSuite.behaviours {
      let directory = arguments[0] + "/\(engine.name)"
      try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: directory) }
      let suite = ConformanceSuite(
        subject: .init(engine: engine), directory: directory, childPath: nil,
        seed: UInt64(arguments[1]) ?? 1)
      guard suite.applies(behaviour) else { continue }
      let start = Date()
      do {
        try suite.run(behaviour)
        say("held after \(Int(-start.timeIntervalSinceNow)) s: \(behaviour.name)")
      } catch { say("not held: \(error)") }
    }
  }

  /// `fuzz DIRECTORY SEED FROM TO` runs the scripts FROM to before TO in child processes, and shrinks the
  /// first one that fails.
  func fuzz() throws {
    let suite = ConformanceSuite(
      subject: .init(engine: engine), directory: arguments[0], childPath: program,
      childArguments: childArguments, seed: UInt64(arguments[1]) ?? 0)
    do { try ScriptCampaign(suite: suite).run(try number(2)..<(try number(3))) } catch {
      // The failure has several lines.
      FileHandle.standardOutput.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }
}
