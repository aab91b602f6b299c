import Foundation
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension Child {
  /// `conformance DIRECTORY SEED` runs every behaviour that needs no other process, for tools that look at this one while it
  /// does: valgrind. Whether the behaviours hold is for the tests to say; here it is only told.
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

  /// `fuzz DIRECTORY SEED FROM TO` runs the scripts FROM to before TO in children of its own, and makes one that fails
  /// smaller.
  func fuzz() throws {
    let suite = ConformanceSuite(
      subject: .init(engine: engine), directory: arguments[0], childPath: CommandLine.arguments[0],
      seed: UInt64(arguments[1]) ?? 0)
    do { try ScriptCampaign(suite: suite).run(try number(2)..<(try number(3))) } catch {
      // In its own lines.
      FileHandle.standardOutput.write(Data("\(error)\n".utf8))
      exit(1)
    }
  }
}
