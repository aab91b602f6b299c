/// The known data sets. docs/datasets.md describes them.
package enum KnownDatasets {
  /// All known data sets.
  package static let datasets: [Dataset] = [syntheticTravel, travelSample, beerSample, gamesimSample]

  /// Returns the data set of that name, or nil.
  package static func dataset(named name: String) -> Dataset? { datasets.first { $0.name == name } }

  /// The default data set: travel-sample if it is on this machine, otherwise synthetic-travel.
  package static func standard(environment: DataDirectory = .fromEnvironment) -> Dataset {
    travelSample.isAvailable(environment: environment) ? travelSample : syntheticTravel
  }

  /// The generated data set. It is always available.
  package static let syntheticTravel = Dataset(
    name: "synthetic-travel",
    summary: "Generated documents of the five types of travel-sample, in its counts and sizes, any number.",
    origin: .generated,
    documents: 31_591,
    types: [
      ("airline", 187), ("airport", 1_968), ("hotel", 917), ("landmark", 4_495), ("route", 24_024),
    ],
    jsonBytes: 37_101_324,
    sha256: "f61266da80c953a9c98bcbc46054f9a0e5be87a234c36cb103e0456b07dd5b88",
    license: "Apache 2.0, as the project: made up, no text is taken from anywhere",
    source: "touchstone itself")

  /// Couchbase Server's travel-sample, with about half of its landmarks. `JSONLinesSource` reads its file.
  package static let travelSample = Dataset(
    name: "travel-sample",
    summary: "Airlines, airports, hotels, landmarks and routes: 29,396 of the 31,591 documents of Couchbase "
      + "Server's sample data, with 2,300 of its 4,495 landmarks.",
    origin: .file(relativePath: "travel-sample/travel-sample.jsonl.gz"),
    documents: 29_396,
    types: [
      ("airline", 187), ("airport", 1_968), ("hotel", 917), ("landmark", 2_300), ("route", 24_024),
    ],
    jsonBytes: 35_190_690,
    sha256: "d998c3fa23c3ec9e7c76878104c600476cfe19cf05d0eba561154beca41609ea",
    license: "OpenFlights data: ODbL 1.0, contents DbCL 1.0; descriptions from Wikivoyage: CC BY-SA; hotel "
      + "reviews from the University of Illinois' TripAdvisor crawl: no licence stated",
    source: "travel-sample.zip of Couchbase Server and of github.com/couchbase/docloader, one JSON object a "
      + "line with its key as _id; OpenFlights (openflights.org/data), Wikivoyage")

  /// Couchbase Server's beer-sample.
  package static let beerSample = Dataset(
    name: "beer-sample",
    summary: "Beers and breweries: Couchbase Server's sample data, complete.",
    origin: .file(relativePath: "json/beer-sample.jsonl.gz"),
    documents: 7_303,
    types: [("beer", 5_891), ("brewery", 1_412)],
    jsonBytes: 2_872_977,
    sha256: "6ca27de27f559b9f719b8911a97d3745052abb3e49e8d1ae119161ba60f9eb6c",
    license: "ODbL 1.0, contents DbCL 1.0",
    source: "examples/beer-sample.zip of github.com/couchbase/docloader, one JSON object a line with its key "
      + "as _id")

  /// Couchbase Server's gamesim-sample.
  package static let gamesimSample = Dataset(
    name: "gamesim-sample",
    summary: "Items, monsters and players of a made-up game: Couchbase Server's sample data, complete.",
    origin: .file(relativePath: "json/gamesim-sample.jsonl.gz"),
    documents: 586,
    types: [("item", 405), ("monster", 100), ("player", 81)],
    jsonBytes: 113_183,
    sha256: "60055f77ec0838a2a019f62d0f2d2d53565151acebf07ba5417588fcdcb3c7f2",
    license: "Apache 2.0",
    source: "examples/gamesim-sample.zip of github.com/couchbase/docloader, one JSON object a line with its "
      + "key as _id")
}
