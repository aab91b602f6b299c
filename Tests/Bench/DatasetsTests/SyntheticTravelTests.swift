import Expectations
import Foundation
import Testing

@testable import Datasets

/// The generator gives what docs/datasets.md promises: counts, sizes, joins, and the same bytes everywhere.
struct SyntheticTravelTests {
  private struct Sizes {
    var count = 0
    var bytes = 0
    var mean: Double { Double(bytes) / Double(count) }
  }

  private func object(_ line: UnsafeRawBufferPointer) throws -> [String: Any] {
    let parsed = try JSONSerialization.jsonObject(with: Data(line))
    return try #require(parsed as? [String: Any])
  }

  @Test func defaultSetHasTheCommittedChecksum() throws {
    let loaded = try LoadedDataset.load("synthetic-travel")
    expect(loaded.count, equals: KnownDatasets.syntheticTravel.documents)
    expect(loaded.jsonBytes, equals: KnownDatasets.syntheticTravel.jsonBytes)
    expect(loaded.sha256, equals: KnownDatasets.syntheticTravel.sha256)
  }

  @Test func sameSeedGivesTheSameBytesAndAnotherSeedOthers() throws {
    let first = try LoadedDataset.load("synthetic-travel", documents: 500, seed: 7)
    let second = try LoadedDataset.load("synthetic-travel", documents: 500, seed: 7)
    let other = try LoadedDataset.load("synthetic-travel", documents: 500, seed: 8)
    expect(first.sha256, equals: second.sha256)
    expect(first.sha256 != other.sha256)
  }

  @Test func randomNumbersAreThoseOfSplitMix64() {
    // Published test values for seed 1234567.
    var random = SeededRandom(seed: 1_234_567)
    expect(random.next(), equals: 6_457_827_717_110_365_317)
    expect(random.next(), equals: 3_203_168_211_198_807_973)
    expect(random.next(), equals: 9_817_491_932_198_370_423)
  }

  @Test func typesComeInThePublishedCountsAndMeanSizes() throws {
    let source = try SyntheticTravel()
    var sizes: [String: Sizes] = [:]
    while let record = try source.next() {
      let type = String(try #require(record.idString).prefix { $0 != "_" })
      sizes[type, default: Sizes()].count += 1
      sizes[type, default: Sizes()].bytes += record.json.count
    }
    // Mean bytes of the compact JSON without its ID, measured on travel-sample.
    let expected: [String: (count: Int, mean: Double)] = [
      "airline": (187, 125), "airport": (1_968, 206), "hotel": (917, 6_248), "landmark": (4_495, 702),
      "route": (24_024, 1_116),
    ]
    expect(sizes.count, equals: expected.count)
    for (type, expected) in expected {
      let found = try #require(sizes[type])
      expect(found.count, equals: expected.count, "\(type)")
      expect(
        abs(found.mean / expected.mean - 1) < 0.04, "\(type): mean \(found.mean), \(expected.mean) wanted")
    }
  }

  @Test func everyLineIsValidJSONWithThePropertiesOfItsType() throws {
    let expected: [String: Set<String>] = [
      "airline": ["_id", "id", "type", "name", "iata", "icao", "callsign", "country"],
      "airport": ["_id", "id", "type", "airportname", "city", "country", "faa", "icao", "tz", "geo"],
      "route": [
        "_id", "id", "type", "airline", "airlineid", "sourceairport", "destinationairport", "stops",
        "equipment", "schedule", "distance",
      ],
      "hotel": [
        "_id", "id", "type", "title", "name", "address", "alias", "checkin", "checkout", "city", "country",
        "description", "directions", "email", "fax", "free_breakfast", "free_internet", "free_parking", "geo",
        "pets_ok", "phone", "price", "public_likes", "reviews", "state", "tollfree", "url", "vacancy",
      ],
      "landmark": [
        "_id", "id", "type", "activity", "address", "alt", "city", "content", "country", "directions",
        "email",
        "geo", "hours", "image", "name", "phone", "price", "state", "title", "tollfree", "url",
      ],
    ]
    let source = try SyntheticTravel(documentCount: 3_000)
    var seen: Set<String> = []
    while let line = source.nextLine() {
      let document = try object(line)
      let type = try #require(document["type"] as? String)
      let id = try #require(document["_id"] as? String)
      try expect(id, equals: "\(type)_\(try #require(document["id"] as? Int))")
      seen.insert(type)
      expect(Set(document.keys).subtracting(["image_direct_url"]), equals: expected[type])
    }
    expect(seen, equals: Set(expected.keys))
  }

  @Test func referencesJoinAndIDsAreSortedAndUnique() throws {
    let source = try SyntheticTravel(documentCount: 4_000, seed: 3)
    var airlines: [String: String] = [:]
    var airports: Set<String> = []
    var previous = ""
    var routes = 0
    while let line = source.nextLine() {
      let document = try object(line)
      let id = try #require(document["_id"] as? String)
      expect(previous < id)
      previous = id
      switch document["type"] as? String {
      case "airline": airlines[id] = document["iata"] as? String ?? document["icao"] as? String
      case "airport":
        if let faa = document["faa"] as? String { expect(airports.insert(faa).inserted) }
      case "route":
        routes += 1
        let airline = try #require(document["airlineid"] as? String)
        expect(airlines[airline] != nil && airlines[airline] == document["airline"] as? String)
        try expect(airports.contains(try #require(document["sourceairport"] as? String)))
        try expect(airports.contains(try #require(document["destinationairport"] as? String)))
      default: break
      }
    }
    expect(routes, equals: TravelType.counts(for: 4_000)[TravelType.route.rawValue])
  }

  @Test(arguments: [0, 1, 2, 4, 5, 6, 17, 300, 31_591, 31_592, 1_000_003])
  func countsAddUpForAnyNumber(_ total: Int) {
    let counts = TravelType.counts(for: total)
    expect(counts.reduce(0, +), equals: total)
    expect(counts.allSatisfy { $0 >= (total >= 5 ? 1 : 0) })
  }

  @Test(arguments: [0, 1, 2, 4, 5, 6, 17])
  func smallSetsHaveAsManyDocumentsAsAsked(_ total: Int) throws {
    let source = try SyntheticTravel(documentCount: total)
    var count = 0
    while try source.next() != nil { count += 1 }
    expect(count, equals: total)
  }

  @Test func codesAreUniqueFarBeyondThreeLetters() {
    var codes: Set<[UInt8]> = []
    for index in 0..<60_000 {
      var code: [UInt8] = []
      TravelCodes.letters(index, salt: 1_234) { code.append($0) }
      codes.insert(code)
    }
    expect(codes.count, equals: 60_000)
  }

  @Test func wordsFollowZipfsLaw() {
    let vocabulary = Vocabulary(seed: 1, wordCount: 6_000)
    var random = SeededRandom(seed: 2)
    var counts = [Int](repeating: 0, count: 6_000)
    for _ in 0..<600_000 { counts[vocabulary.draw(random.next())] += 1 }
    // Weight 1 / (rank + 3): rank 7 is drawn 3/10 as often as rank 0, rank 297 1/100.
    expect(abs(Double(counts[7]) / Double(counts[0]) - 0.3) < 0.03)
    expect(abs(Double(counts[297]) / Double(counts[0]) - 0.01) < 0.004)
  }

  @Test func decimalsKeepTheirFractionAndLoseItsZeros() {
    expect(written { $0.decimal(51_357_850, 6) }, equals: "51.35785")
    expect(written { $0.decimal(-2_000_000, 6) }, equals: "-2.0")
    expect(written { $0.decimal(-10_005, 6) }, equals: "-0.010005")
    expect(written { $0.integer(Int.max) }, equals: "\(Int.max)")
    expect(written { $0.integer(0) }, equals: "0")
  }

  private func written(_ body: (inout JSONText) -> Void) -> String {
    var bytes = [UInt8](repeating: 0, count: 64)
    return bytes.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return "" }
      var text = JSONText(base: base, capacity: 64)
      body(&text)
      return String(decoding: buffer[..<text.count], as: UTF8.self)
    }
  }
}
