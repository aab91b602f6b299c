import TestSupport
import Testing

@testable import Documents

@Suite("Histories with gaps") struct RevisionHistoryTests {
  @Test("gaps are filled up to what the peer takes, and the last revision stays") func filled() {
    func filled(_ history: [String], _ maximum: Int) -> [String] {
      RevisionHistory.filled(history, maximum: maximum)
    }
    expect(filled(["3-c"], 20), equals: ["3-c"])
    expect(filled(["3-c", "2-b", "1-a"], 20), equals: ["3-c", "2-b", "1-a"])
    // What can't be read stays as it is.
    expect(filled(["3-c", "x", "1-a"], 20), equals: ["3-c", "x", "1-a"])
    let gap = filled(["6-f", "5-e", "2-b"], 20)
    expect(gap.count == 5 && gap.prefix(2) == ["6-f", "5-e"] && gap.last == "2-b")
    expect(gap[2].hasPrefix("4-faded000") && gap[3].hasPrefix("3-faded000") && gap[2].utf8.count == 26)
    expect(gap.allSatisfy { RevisionID($0) != nil } && gap == filled(["6-f", "5-e", "2-b"], 20))
    for maximum in 1..<30 {
      for low in [1, 10, 90] {
        let history = filled(["100-a", "99-b", "\(low)-c"], maximum)
        expect(history.count <= maximum + 1 && history.first == "100-a" && history.last == "\(low)-c")
        let generations = history.map { RevisionID($0)?.generation ?? 0 }
        for index in generations.indices.dropFirst() {
          expect(generations[index] == generations[index - 1] - 1 || index == maximum)
        }
      }
    }
    let two = filled(["30-a", "20-b", "10-c", "9-d"], 15)
    expect(two.count == 16 && two.last == "9-d" && two.contains("20-b"))
  }

  @Test("histories without gaps end where too much is missing") func dense() throws {
    func dense(_ history: [String], _ maximum: Int) -> [String] {
      RevisionHistory.dense(history.compactMap { RevisionID($0) }, maximum: maximum).map(\.description)
    }
    expect(dense([], 20), equals: [])
    expect(dense(["3-c", "2-b", "1-a"], 20), equals: ["3-c", "2-b", "1-a"])
    // What has no gap isn't cut.
    expect(dense(["3-c", "2-b", "1-a"], 1), equals: ["3-c", "2-b", "1-a"])
    expect(dense(["6-f", "5-e", "2-b"], 5), equals: filledGap)
    expect(dense(["6-f", "5-e", "2-b"], 4), equals: ["6-f", "5-e"])
    expect(dense(["6-f", "5-e", "2-b", "1-a"], 5), equals: filledGap + ["1-a"])
    // What doesn't descend ends it.
    expect(dense(["6-f", "6-e", "5-b"], 20) == ["6-f"] && dense(["6-f", "7-e"], 20) == ["6-f"])
    let most = try #require(RevisionID("\(RevisionID.maximumGeneration)-a"))
    let first = try #require(RevisionID("1-a"))
    expect(RevisionHistory.dense([most, first]), equals: [most])
    let long = RevisionHistory.dense([try #require(RevisionID("1000-a")), first])
    expect(long.count == 1_000 && long.last == first && Set(long).count == 1_000)
    try expect(RevisionHistory.dense([try #require(RevisionID("1001-a")), first]).count, equals: 1)
  }

  private var filledGap: [String] { RevisionHistory.filled(["6-f", "5-e", "2-b"], maximum: 20) }
}
