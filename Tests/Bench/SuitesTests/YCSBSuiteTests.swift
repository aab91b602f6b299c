import BenchmarkKit
import Datasets
import TestSupport

@testable import Suites

/// The workloads of YCSB: their distributions against the theory, and runs that see what they should.
struct YCSBSuiteTests {
  /// The greatest deviation of counts from probabilities, in standard deviations of each count.
  private func deviation(_ counts: [Int], _ probabilities: [Double], draws: Int) -> Double {
    zip(counts, probabilities).map { count, probability in
      let expected = probability * Double(draws)
      return abs(Double(count) - expected) / (expected * (1 - probability)).squareRoot()
    }.max() ?? 0
  }

  @Test(arguments: [(1_000, 0.99), (10_000, 0.99), (10_000, 0.5)])
  func zipfianRanksAreAsFrequentAsTheirPower(_ count: Int, _ theta: Double) {
    let draws = 400_000
    let zipfian = Zipfian(count, theta: theta)
    let zeta = (1...count).reduce(0.0) { $0 + pow(Double($1), -theta) }
    expect(abs(zipfian.zeta - zeta) < 1e-9 * zeta)
    var random = SeededRandom(seed: 7)
    var counts = [Int](repeating: 0, count: count)
    for _ in 0..<draws { counts[zipfian.next(&random)] += 1 }
    // The first two exactly; five standard deviations come once in two million.
    let first = (1...2).map { pow(Double($0), -theta) / zeta }
    expect(deviation(Array(counts[..<2]), first, draws: draws) < 5)
    // The others by a curve: the share of all ranks up to one is within 2% of all draws.
    var found = 0
    var expected = 0.0
    for rank in 0..<count {
      found += counts[rank]
      expected += pow(Double(rank + 1), -theta) / zeta
      expect(abs(Double(found) / Double(draws) - expected) < 0.02, "rank \(rank)")
    }
  }

  @Test func zipfianRanksStayBelowTheirCountAlsoWhenItGrows() {
    for count in [1, 2, 3, 10] {
      let zipfian = Zipfian(count)
      expect(zipfian.rank(0), equals: 0)
      expect((0..<count).contains(zipfian.rank(0.999_999_999_999_999_9)))
    }
    var grown = Zipfian(1_000)
    grown.grow(to: 5_000)
    let made = Zipfian(5_000)
    for step in 0..<1_000 {
      let uniform = Double(step) / 1_000
      expect(abs(grown.rank(uniform) - made.rank(uniform)) <= 1)
    }
    expect(grown.rank(0.999_999_999) > 4_900)
  }

  @Test func theSumOfTenBillionPowersIsThePublishedOne() {
    // The constant of YCSB's ScrambledZipfianGenerator, which its authors summed up term by term.
    expect(abs(Zipfian.zeta(ScrambledZipfian.ranks, 0.99) - 26.469_028_201_783_02) < 1e-7)
    let direct = (1...100_000).reduce(0.0) { $0 + pow(Double($1), -0.99) }
    expect(abs(Zipfian.zeta(100_000, 0.99) - direct) < 1e-9)
  }

  @Test func theHashIsTheOneOfItsAuthors() {
    // FNV-1a of eight zero bytes, step by step: a zero byte only multiplies.
    var hash: UInt64 = 14_695_981_039_346_656_037
    for _ in 0..<8 { hash = hash &* 1_099_511_628_211 }
    expect(FNV1a.hash(0), equals: hash)
    // A published vector: the bytes of "a" with seven more multiplications.
    hash = 0xAF63_DC4C_8601_EC8C
    for _ in 0..<7 { hash = hash &* 1_099_511_628_211 }
    expect(FNV1a.hash(0x61), equals: hash)
  }

  @Test func scrambledNumbersAreAsFrequentAsTheRanksThatLieThere() {
    let (count, draws) = (1_000, 400_000)
    let scrambled = ScrambledZipfian(count)
    var random = SeededRandom(seed: 11)
    var counts = [Int](repeating: 0, count: count)
    for _ in 0..<draws { counts[scrambled.next(&random)] += 1 }
    // Numbers of the two most frequent ranks: theirs, and a share of the others, which is spread evenly.
    let zeta = Zipfian.zeta(ScrambledZipfian.ranks, 0.99)
    for rank in 0..<2 {
      let number = ScrambledZipfian.number(rank, below: count)
      let share = Double(counts[number]) / Double(draws)
      let least = pow(Double(rank + 1), -0.99) / zeta
      expect(share > least * 0.97 && share < least + 0.01, "rank \(rank): \(share), at least \(least)")
    }
    // They lie anywhere: neither half has nearly all.
    expect((0.3...0.7).contains(Double(counts[..<500].reduce(0, +)) / Double(draws)))
    expect(counts.count { $0 == 0 }, equals: 0)
  }

  @Test func theLatestDocumentsAreReadMostAndInsertsCountFromThen() {
    let requests = YCSBRequest.draw(
      .readLatest, .latest, count: 50_000, documents: 1_000, threads: 1, seed: 3)
    let reads = requests.filter { $0.operation == .read }
    let inserts = requests.count { $0.operation == .insert }
    expect((2_250...2_750).contains(inserts))
    // The very last one: 1 / zeta(n), where n grows from 1,000 to 3,500.
    let share = Double(reads.count { $0.number == 0 }) / Double(reads.count)
    expect(share > 1 / Zipfian.zeta(3_600, 0.99) * 0.95 && share < 1 / Zipfian.zeta(1_000, 0.99) * 1.05)
    var present = 1_000
    for request in requests {
      if request.operation == .insert { present += 1 } else { expect(request.number < present) }
    }
  }

  @Test func uniformNumbersAndLengthsAndTheMixesAreWhatTheySay() {
    let draws = 200_000
    let requests = YCSBRequest.draw(.readOnly, .uniform, count: draws, documents: 100, threads: 1, seed: 5)
    var counts = [Int](repeating: 0, count: 100)
    var lengths = [Int](repeating: 0, count: 100)
    for request in requests {
      counts[Int(request.number)] += 1
      lengths[Int(request.length) - 1] += 1
    }
    let even = [Double](repeating: 0.01, count: 100)
    expect(deviation(counts, even, draws: draws) < 5)
    expect(deviation(lengths, even, draws: draws) < 5)
    for kind in YCSBWorkload.allCases where kind != .load {
      let requests = YCSBRequest.draw(kind, .zipfian, count: 20_000, documents: 500, threads: 2, seed: 9)
      let share = Double(requests.count { $0.operation == kind.mix.operation }) / 20_000
      expect(abs(share - kind.mix.share) < 0.02, "\(kind)")
    }
  }

  @Test func onlyDocumentsWithAllBeforeThemAreAcknowledged() {
    let inserts = YCSBInserts(after: 10)
    let taken = (0..<3).map { _ in inserts.take() }
    expect(taken, equals: [10, 11, 12])
    inserts.acknowledge(11)
    expect(inserts.acknowledged, equals: 10)
    inserts.acknowledge(10)
    expect(inserts.acknowledged, equals: 12)
    inserts.acknowledge(12)
    expect(inserts.acknowledged, equals: 13)
  }

  @Test(arguments: benchedEngines)
  func everyMixRunsWithItsLatencies(_ engine: EngineName) throws {
    let file = try ran(.ycsb, on: [engine], documents: 500) { $0.rates = [4_000] }
    expect(Set(file.results.map(\.workload)), equals: Set(YCSBWorkload.allCases.map(\.rawValue)))
    // One and two threads of six mixes, two rates, one uniform choice, the load.
    expect(file.results.count, equals: 16)
    for result in file.results where result.workload != "load" {
      let percentiles = [Metric.latencyP50, .latencyP95, .latencyP99, .latencyP999, .latencyMax]
        .compactMap { result.metrics[$0]?.median }
      expect(percentiles.count == 5 && percentiles == percentiles.sorted(), "\(result.label)")
      expect((percentiles.first ?? 0) > 0)
    }
    let load = try #require(file.results.first { $0.workload == "load" })
    // More than a byte for a byte: keys, revisions and trees come on top.
    expect((load.metrics[.writeAmplification]?.median ?? 0) > 1)
    expect((1.0...20).contains(load.metrics[.spaceAmplification]?.median ?? 0))
    let notes = Suite.ycsb.notes(file.results)
    expect(notes.count == 2 && notes.allSatisfy { $0.contains("rate=4000") }, "\(notes)")
    let table = LatencyTable(file.results).text()
    expect(table.contains("p99.9") && table.contains("f-read-modify-write"))
    let amplifications = ValueTable.amplifications(file.results, engines: [engine.rawValue]).text()
    expect(amplifications.contains(" stored") && amplifications.contains("a-update-heavy"))
  }

  @Test func whatIsReadIsLookedAt() throws {
    let settings = BenchSettings(workDirectory: NSTemporaryDirectory(), documents: 100)
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let context = SuiteContext(
      settings: settings, engines: [:], fixtures: Fixtures(in: directory.path), dataset: nil)
    let data = YCSBData(context)
    let database = try Database.open("wrong", in: directory.path, options: DatabaseOptions(engine: .lmdb))
    defer { try? database.close() }
    try data.load(database)
    let client = try YCSBClient(database, data, YCSBInserts(after: data.documents))
    func run(_ operation: YCSBWorkload.Operation) throws {
      let request = YCSBRequest(operation: operation, number: 5, length: 3, body: 1)
      try client.run(request, choosesLatest: false)
    }
    let kinds: [YCSBWorkload.Operation] = [.read, .scan, .readModifyWrite]
    for kind in kinds { try run(kind) }
    // A field that is too short.
    _ = try database.update(data.ids[5]) { $0["field3"] = "short" }
    for kind in kinds { #expect(throws: YCSBClient.Wrong.self, "\(kind)") { try run(kind) } }
    try database.purge(data.ids[5])
    #expect(throws: YCSBClient.Wrong.self) { try run(.read) }
  }
}
