// Random queries for ever (`make fuzz-queries`), or one case again.
//
//   random-queries [--seed N] [--rounds N] [--engines NAME,NAME] [--case FILE]

import ChildSupport
import Foundation
import QueryDifferential
import TestSupport
import Touchstone

@main enum RandomQueries {
  static func main() throws {
    var seed = UInt64.random(in: 0..<1_000_000_000)
    var rounds = Int.max
    // Registers those too whose libraries not every machine has.
    var engines = onlyEngines ?? [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted] + optionalEngines
    var file: String?
    var arguments = CommandLine.arguments.dropFirst()
    while let option = arguments.popFirst() {
      let value = arguments.popFirst() ?? ""
      switch option {
      case "--seed": seed = UInt64(value) ?? seed
      case "--rounds": rounds = Int(value) ?? rounds
      case "--engines": engines = value.split(separator: ",").map { EngineName(rawValue: String($0)) }
      case "--case": file = value
      default:
        print("usage: random-queries [--seed N] [--rounds N] [--engines NAME,NAME] [--case FILE]")
        exit(2)
      }
    }

    if let file {
      let found = try DifferentialCase(text: String(contentsOfFile: file, encoding: .utf8))
      guard let failure = found.failure(on: engines) else {
        print("nothing is wrong")
        exit(0)
      }
      print("\(failure.engine), \(failure.way)\n\(failure.message)")
      exit(1)
    }

    say("random-queries: --seed \(seed)")
    var campaign = QueryCampaign(engines: engines)
    campaign.report = { say($0 + "\n") }
    var done = 0
    var asked = 0
    while done < rounds {
      let summary = try campaign.run(seed: seed &+ UInt64(done), rounds: min(20, rounds - done))
      done += 20
      asked += summary.queries
      say(
        "\(asked) queries; of the last \(summary.queries), \(summary.answered) were answered naively, "
          + "\(summary.withRows) gave rows, \(summary.open) are open, \(summary.refused) were refused")
      if ProcessInfo.processInfo.environment["TOUCHSTONE_REFUSED"] != nil, summary.refused > 0 {
        say(summary.refusal)
      }
      if !summary.failures.isEmpty { exit(1) }
    }
  }
}
