import QueryDifferential
import TestSupport

/// Random queries over random documents: the same rows on every engine, by every way of taking them, with indexes and
/// without, as the naive evaluator gives.
@Suite struct QueryDifferentialTests {
  private static let engines: [EngineName] = onlyEngines ?? [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted]

  @Test("engines, plans and ways agree with the naive evaluator") func campaign() throws {
    var campaign = QueryCampaign(engines: Self.engines)
    campaign.report = { Issue.record("\($0)") }
    let isSlow = isSanitized || isStrict
    let queries = isLong ? isSlow ? 6_000 : 100_000 : 600
    let summary = try campaign.run(seed: testSeed, rounds: queries / campaign.queriesPerRound)
    print("\(summary.queries) random queries, \(summary.withRows) with rows, \(summary.refused) refused")
    // The generator still asks for something.
    expect(summary.withRows * 10 > summary.queries * 3)
    expect(summary.refused * 50 < summary.queries, "\(summary.refusal)")
  }
}
