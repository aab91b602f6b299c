import BenchmarkKit
import TestSupport

@testable import Suites

struct ScaleSuiteTests {
  @Test(arguments: benchedEngines)
  func everyWorkloadRunsAtEverySizeAndGrowthIsToldOf(_ engine: EngineName) throws {
    let file = try ran(.scale, on: [engine], documents: 400)
    let sizes = [30, 100, 400]
    let expected = ScaleWorkload.allCases.flatMap { kind in sizes.map { "\(kind.rawValue) (documents=\($0))" }
    }
    expect(file.results.map(\.label), equals: expected)
    expect(file.results.allSatisfy { $0.metrics.seconds.median > 0 && $0.metrics.fileBytes.median > 0 })
    let notes = Suite.scale.notes(file.results)
    expect(
      notes.count { $0.contains("grows with documents as the power") }, equals: ScaleWorkload.allCases.count,
      "\(notes)")
    expect(notes.contains { $0.hasPrefix("Bytes of file a document") })
  }

  @Test func sizesAreStepsUpToTheLargest() {
    expect(ScaleWorkload.sizes(upTo: 100_000), equals: [10_000, 30_000, 100_000])
    expect(ScaleWorkload.sizes(upTo: 1_000_000), equals: [10_000, 30_000, 100_000, 300_000, 1_000_000])
    expect(ScaleWorkload.sizes(upTo: 10_000_000).last, equals: 10_000_000)
    expect(ScaleWorkload.sizes(upTo: 31_591), equals: [3_000, 10_000, 31_591])
    expect(ScaleWorkload.sizes(upTo: 10), equals: [1, 3, 10])
    for largest in [10, 17, 60, 300, 999, 1_000, 12_345, 250_000] {
      let sizes = ScaleWorkload.sizes(upTo: largest)
      // Enough for a curve.
      expect(sizes.count >= 3 && sizes[0] * 10 <= largest && sizes.last == largest, "\(largest): \(sizes)")
      expect(sizes, equals: Set(sizes).sorted())
    }
  }

  @Test func documentsAreTheSameEachTimeAndAHundredAreOfACity() throws {
    let numbers = 0..<1_000
    expect(Set(numbers.map(HotelDocument.id)).count, equals: 1_000)
    expect(Dictionary(grouping: numbers, by: HotelDocument.city).values.allSatisfy { $0.count == 100 })
    for number in [0, 1, 89, 977, 123_456_789] {
      let json = HotelDocument.json(number, version: 3)
      expect(json, equals: HotelDocument.json(number, version: 3))
      let object = try #require(try JSONSerialization.jsonObject(with: Data(json)) as? [String: Any])
      expect(object["stars"] as? Int, equals: HotelDocument.stars(number))
      expect(object["city"] as? String, equals: HotelDocument.city(number))
      expect((300...500).contains(json.count), "\(json.count)")
    }
  }
}
