import BenchmarkKit
import TestSupport

@testable import Suites

/// The suites about encryption and conversion, and the one about what the old guide says, at sizes that say nothing.
struct EncryptionSuitesTests {
  private func run(_ suite: Suite, documents: Int, samples: Int = 2) throws -> ResultsFile {
    let file = try ran(suite, samples: samples, dataset: "synthetic-travel", documents: documents)
    expect(Set(file.results.map(\.workload)), equals: Set(suite.workloadNames))
    for result in file.results { expect(result.metrics.seconds.median > 0, "\(result.label)") }
    return file
  }

  @Test func encryptionIsComparedForEachCache() throws {
    let file = try run(.encryption, documents: 120)
    let engines = Suite.encryption.engines(BenchSettings(workDirectory: ".")).map(\.name)
    expect(Set(file.results.map(\.engine)) == Set(engines) && engines.contains("sqlcipher-plain"))
    expect(file.results.count, equals: engines.count * EncryptionWorkload.allCases.count * 2)
    let notes = Suite.encryption.notes(file.results)
    expect(notes.first?.contains("64 MiB"), equals: true)
    let compared = notes.filter { $0.hasPrefix("sqlcipher over sqlcipher-plain, cache ") }
    expect(compared.count, equals: 2)
    expect(
      compared.allSatisfy { line in EncryptionWorkload.allCases.allSatisfy { line.contains($0.rawValue) } })
  }

  @Test func conversionsRunBetweenEachPairOfEngines() throws {
    let file = try run(.convert, documents: 60, samples: 1)
    let engines = Suite.convert.engines(BenchSettings(workDirectory: "."))
    let pairs = file.results.filter { $0.workload == "convert" }
    expect(pairs.count, equals: engines.count * (engines.count - 1))
    expect(pairs.allSatisfy { $0.limit != nil && $0.parameters["from"] != .string($0.engine) })
    expect(file.results.filter { $0.workload == "verify" }.count, equals: engines.count * engines.count)
    let encrypting = engines.filter(\.encrypts).count
    for name in ["rekey", "rotate", "encrypt", "decrypt"] {
      expect(file.results.filter { $0.workload == name }.count, equals: encrypting, "\(name)")
    }
  }

  @Test func claimsAreATableOfWhatHolds() throws {
    let file = try run(.claims, documents: 200)
    let notes = Suite.claims.tables(file.results).flatMap(\.lines)
    expect(notes.contains { $0.hasPrefix("claim ") && $0.hasSuffix("holds") }, "\(notes)")
    for kind in ClaimsWorkload.operations {
      expect(notes.contains { $0.hasPrefix("2x to 5x as fast: \(kind.rawValue) ") }, "\(kind)")
    }
    expect(notes.filter { $0.hasPrefix("writers never block readers: ") }.count, equals: 4)
    expect(notes.filter { $0.hasPrefix("lower RAM footprint: ") }.count, equals: 2)
    // One engine alone proves nothing.
    expect(Suite.claims.tables(file.results.filter { $0.engine == "lmdb" }).flatMap(\.rows).count, equals: 2)
  }
}
