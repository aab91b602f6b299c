import Expectations
import Foundation
import Testing

@testable import Datasets

/// Data sets are found by name or path, and what isn't there is said so.
struct LookupTests {
  private let nowhere = DataDirectory(path: nil)

  @Test func unknownNameListsTheKnownOnes() {
    let error = #expect(throws: DatasetError.self) { try LoadedDataset.load("no-such-set") }
    expect(error?.code, equals: .unknownDataset)
    expect(error?.message.contains("synthetic-travel"), equals: true)
  }

  @Test func knownSetThatIsNotHereSaysWhereItIsLookedFor() {
    let error = #expect(throws: DatasetError.self) {
      try LoadedDataset.load("travel-sample", environment: nowhere)
    }
    expect(error?.code, equals: .notHere)
    expect(error?.message.contains("TOUCHSTONE_DATA"), equals: true)
  }

  @Test func withoutTheRealSetTheGeneratedOneIsStandard() {
    expect(KnownDatasets.standard(environment: nowhere).name, equals: "synthetic-travel")
  }

  @Test func namesAreUniqueAndTypesAddUp() {
    expect(Set(KnownDatasets.datasets.map(\.name)).count, equals: KnownDatasets.datasets.count)
    for dataset in KnownDatasets.datasets {
      expect(dataset.types.reduce(0) { $0 + $1.documents }, equals: dataset.documents, "\(dataset.name)")
      expect(dataset.sha256.count, equals: 64, "\(dataset.name)")
    }
  }

  /// Those that are on this machine; none may be.
  @Test(arguments: KnownDatasets.datasets.filter { $0.path() != nil }.map(\.name))
  func fileSetsAreAsTheManifestSays(_ name: String) throws {
    let dataset = try #require(KnownDatasets.dataset(named: name))
    let loaded = try LoadedDataset.load(name)
    expect(loaded.count, equals: dataset.documents)
    expect(loaded.jsonBytes, equals: dataset.jsonBytes)
    expect(loaded.sha256, equals: dataset.sha256)
  }

  @Test func fewerDocumentsAreTakenEvenlyFromTheWhole() throws {
    let text = (0..<100).map { "{\"_id\":\"\($0)\",\"n\":\($0)}\n" }.joined()
    try withFile(Array(text.utf8)) { path in
      let loaded = try LoadedDataset.load(path, documents: 4)
      let ids = (0..<loaded.count).map { String(decoding: loaded.id($0), as: UTF8.self) }
      expect(ids, equals: ["24", "49", "74", "99"])
      expect(String(decoding: loaded.json(0), as: UTF8.self), equals: "{\"n\":24}")
      try expect(LoadedDataset.load(path, documents: 1_000).count, equals: 100)
    }
  }

  @Test func lineWithoutIDStreamsWithoutOne() throws {
    try withFile(Array("{\"a\":1}\n".utf8)) { path in
      let source = try DatasetLookup.open(path)
      let record = try #require(try source.next())
      expect(record.id == nil)
    }
  }

  @Test func zeroDocumentsAreRefused() {
    #expect(throws: DatasetError.self) { try LoadedDataset.load("synthetic-travel", documents: 0) }
  }
}
