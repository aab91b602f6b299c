/// Generates documents like those of travel-sample: its five types in the published proportions, with its
/// property names and sizes. The text has made-up words with a skewed distribution. References between
/// documents are valid.
///
/// The same seed and number give the same bytes on every machine, because everything comes from
/// `SeededRandom` and integer arithmetic. A document depends only on the seed, the number of documents and
/// its own index. The `airlineid` of every route is the ID of an airline, and its airports are the `faa` of
/// airports. Documents are sorted by ID.
///
/// Memory is constant. Not `Sendable`: use it from one thread at a time.
package final class SyntheticTravel: RecordSource {
  /// The number of documents in the published travel-sample.
  package static let publishedCount = TravelType.publishedTotal
  /// The default seed. The manifest has the checksum of its documents.
  package static let defaultSeed: UInt64 = 1

  /// The maximum length of a document: nine reviews of the greatest length, and the rest.
  static let maximumLineBytes = 256 << 10

  /// The number of documents.
  package let documentCount: Int
  /// The seed of all random data.
  package let seed: UInt64

  let vocabulary: Vocabulary
  let counts: [Int]
  let cityCount: Int
  private let numberings: [TravelNumbering]
  private let buffer: UnsafeMutablePointer<UInt8>
  var text: JSONText
  private var type = TravelType.airline
  private var index = 0
  private var idRange = 0..<0
  /// The number of the last line, from 1.
  package private(set) var lineNumber = 0

  /// Makes a generator of `documentCount` documents, from 0 to 1,000,000,000. Throws `invalidArgument` for
  /// other numbers.
  package init(documentCount: Int = publishedCount, seed: UInt64 = defaultSeed) throws {
    guard documentCount >= 0, documentCount <= 1_000_000_000 else {
      throw DatasetError(.invalidArgument, "\(documentCount) documents can't be generated")
    }
    self.documentCount = documentCount
    self.seed = seed
    vocabulary = Vocabulary(seed: seed, wordCount: 6_000)
    counts = TravelType.counts(for: documentCount)
    cityCount = max(8, min(1_500, documentCount / 20))
    numberings = zip(TravelType.allCases, counts).map { $0.numbering(count: $1) }
    buffer = .allocate(capacity: SyntheticTravel.maximumLineBytes)
    text = JSONText(base: buffer, capacity: SyntheticTravel.maximumLineBytes)
  }

  deinit { buffer.deallocate() }

  /// Returns the next document as a line of JSON that begins with `{"_id":"…",`; nil after the last one.
  /// Valid until the next call.
  package func nextLine() -> UnsafeRawBufferPointer? {
    while index == counts[type.rawValue] {
      guard let following = TravelType(rawValue: type.rawValue + 1) else { return nil }
      type = following
      index = 0
    }
    var random = SeededRandom(
      seed: seed, stream: UInt64(type.rawValue) + 1, index: UInt64(truncatingIfNeeded: index))
    text.clear()
    text.raw(#"{"_id":""#)
    let idStart = text.count
    writeID(type, index)
    idRange = idStart..<text.count
    text.raw(#"","id":"#)
    text.integer(numberings[type.rawValue].number(index, seed: seed))
    switch type {
    case .airline: writeAirline(index, &random)
    case .airport: writeAirport(index, &random)
    case .hotel: writeHotel(&random)
    case .landmark: writeLandmark(&random)
    case .route: writeRoute(&random)
    }
    text.byte(0x7D)
    index += 1
    lineNumber += 1
    return UnsafeRawBufferPointer(start: buffer, count: text.count)
  }

  /// Returns the next document and its ID; nil after the last one. Never throws.
  package func next() throws -> Record? {
    guard nextLine() != nil else { return nil }
    return currentRecord
  }

  /// The document that `nextLine()` last returned, without its ID. Changes the line.
  var currentRecord: Record? {
    guard text.count > 0 else { return nil }
    // The comma after the ID becomes the opening brace.
    let start = idRange.upperBound + 1
    buffer[start] = 0x7B
    return Record(
      id: UnsafeRawBufferPointer(start: buffer + idRange.lowerBound, count: idRange.count),
      json: UnsafeRawBufferPointer(start: buffer + start, count: text.count - start))
  }

  /// Writes the ID of a document, `airline_1000`, without quotes.
  func writeID(_ type: TravelType, _ index: Int) {
    switch type {
    case .airline: text.raw("airline_")
    case .airport: text.raw("airport_")
    case .hotel: text.raw("hotel_")
    case .landmark: text.raw("landmark_")
    case .route: text.raw("route_")
    }
    text.integer(numberings[type.rawValue].number(index, seed: seed))
  }
}
