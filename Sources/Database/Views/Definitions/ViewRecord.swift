import Bytes
import Documents
import FullText
import Storage

// The keyspace `views`:
//
//   "n"         → number:varint     the number of the last view that was made; numbers are never used twice
//   "v" name    → record
//
//   record     := version:u8=1  number:varint  collation:u8  options:u8  lastSequence:varint  changedAt:varint  purge:varint
//                 stage:u8  cursor:string  mapVersion:string  collator:string  documentType:string  reducer:string
//                 language:string  analysis:string
//   string     := length:varint  bytes
//
//   options        1 there is a document type; 2 there is a language
//   lastSequence   every change up to this sequence is in the rows
//   changedAt      the sequence of the last update that changed rows
//   purge          the number of the last purge that is in the rows
//   stage          0 there are no rows; 1 whole; 2 being built: all documents up to the ID `cursor` are mapped
//   mapVersion     of the map function; another one rebuilds the view
//   collator       the version of ICU's collator, empty where none is used; another one rebuilds the view
//   language       of the texts that are keys; another one rebuilds the view
//   analysis       of the index of texts, empty where there is none; another one rebuilds the view
//   reducer        what names the stored partial reductions (docs/view-reductions.md); another one rebuilds them
//
// The keyspaces of view number N:
//
//   view.N             the rows (StoredRow.swift), a `LongKeyspace`
//   view.N.sources     document ID → source*     the rows of a document: source := keyLength:varint key emission:varint
//   view.N.reductions  partial reductions, a `LongKeyspace` (docs/view-reductions.md)
//   view.N.boxes       if any row has a box: the index of boxes (GeoIndex.swift)
//   view.N.text        if any row has a text: the inverted index of the texts (docs/fulltext-index.md), with
//   view.N.text.blocks its blocks. A document of the index is a row, named by its document ID and emission as in its key

/// What a database keeps of a view besides its rows.
struct ViewRecord: Sendable, Hashable {
  enum Stage: UInt8, Sendable {
    case empty = 0
    case whole = 1
    case building = 2
  }

  var number: UInt32
  var collation: ViewCollation
  var mapVersion: [UInt8]
  var documentType: [UInt8]?
  var collator: [UInt8]
  var reducer: [UInt8] = []
  var language: FullTextLanguage?
  var analysis: [UInt8] = []
  var lastSequence: UInt64 = 0
  var changedAt: UInt64 = 0
  var purge: UInt64 = 0
  var stage = Stage.empty
  var cursor: [UInt8] = []

  static let version: UInt8 = 1
  static let prefix = UInt8(ascii: "v")
  static let numberKey = [UInt8(ascii: "n")]

  static func key(_ name: String) -> [UInt8] { [prefix] + Array(name.utf8) }

  var rowsName: String { "view.\(number)" }
  var sourcesName: String { "view.\(number).sources" }
  var reductionsName: String { "view.\(number).reductions" }
  var boxesName: String { "view.\(number).boxes" }
  var textName: String { "view.\(number).text" }

  /// Forgets the rows, which are to be built again.
  mutating func reset() {
    (lastSequence, changedAt, purge, stage, cursor, reducer, analysis) = (0, 0, 0, .empty, [], [], [])
  }

  /// Whether the rows are those of the same map function.
  func isSameMap(_ other: ViewRecord) -> Bool {
    mapVersion == other.mapVersion && collation == other.collation && documentType == other.documentType
      && collator == other.collator && language == other.language
      && (analysis.isEmpty || analysis == Array(AnalysisVersion.text(of: textOptions).utf8))
  }

  init(
    number: UInt32, collation: ViewCollation, mapVersion: [UInt8], documentType: [UInt8]?, collator: [UInt8],
    language: FullTextLanguage?
  ) {
    self.number = number
    self.collation = collation
    self.mapVersion = mapVersion
    self.documentType = documentType
    self.collator = collator
    self.language = language
  }

  /// How the texts that are keys are analysed: as in Couchbase Lite 1.x, without accents and with all words.
  var textOptions: TextAnalysisOptions {
    TextAnalysisOptions(language: language, ignoresAccents: true, stopWords: .none)
  }

  var encoded: [UInt8] {
    var bytes = ByteBuffer(capacity: 256)
    func string(_ text: [UInt8], _ bytes: inout ByteBuffer) {
      bytes.append(varint: UInt64(text.count))
      text.withUnsafeBytes { bytes.append($0) }
    }
    bytes.append(ViewRecord.version)
    bytes.append(varint: UInt64(number))
    bytes.append(collation.rawValue)
    bytes.append((documentType == nil ? 0 : 1) | (language == nil ? 0 : 2))
    bytes.append(varint: lastSequence)
    bytes.append(varint: changedAt)
    bytes.append(varint: purge)
    bytes.append(stage.rawValue)
    string(cursor, &bytes)
    string(mapVersion, &bytes)
    string(collator, &bytes)
    string(documentType ?? [], &bytes)
    string(reducer, &bytes)
    string(language.map { Array($0.rawValue.utf8) } ?? [], &bytes)
    string(analysis, &bytes)
    return [UInt8](bytes.bytes)
  }

  init(_ value: RawSpan, of name: String) throws {
    let damaged = ViewError(.damaged, "its record can't be read", view: name)
    var reader = ByteReader(value)
    func string(_ reader: inout ByteReader) throws -> [UInt8] {
      guard let length = reader.varint(), let bytes = reader.bytes(Int(clamping: length)) else {
        throw damaged
      }
      return [UInt8](copying: bytes)
    }
    guard let version = reader.byte() else { throw damaged }
    guard version == ViewRecord.version else {
      throw ViewError(
        .unsupportedVersion, "its format is \(version), which this release doesn't support", view: name)
    }
    guard let number = reader.varint().flatMap({ UInt32(exactly: $0) }), number > 0,
      let collation = reader.byte().flatMap({ ViewCollation(rawValue: $0) }), let options = reader.byte(),
      options < 4,
      let lastSequence = reader.varint(), let changedAt = reader.varint(), let purge = reader.varint(),
      let stage = reader.byte().flatMap({ Stage(rawValue: $0) })
    else { throw damaged }
    self.number = number
    self.collation = collation
    self.lastSequence = lastSequence
    self.changedAt = changedAt
    self.purge = purge
    self.stage = stage
    cursor = try string(&reader)
    mapVersion = try string(&reader)
    collator = try string(&reader)
    let type = try string(&reader)
    reducer = try string(&reader)
    documentType = options & 1 == 0 ? nil : type
    if options & 2 != 0 {
      guard let language = FullTextLanguage(rawValue: String(decoding: try string(&reader), as: UTF8.self))
      else {
        throw damaged
      }
      self.language = language
    } else if try !string(&reader).isEmpty {
      throw damaged
    }
    analysis = try string(&reader)
    guard reader.rest.byteCount == 0 else { throw damaged }
  }

  /// Reads the record of a view, nil if there is none.
  static func read(_ name: String, in transaction: any ReadTransaction) throws -> ViewRecord? {
    guard let keyspace = try transaction.keyspace(named: DocumentStore.viewsKeyspace) else { return nil }
    return try transaction.withValue(at: key(name), in: keyspace) { try ViewRecord($0, of: name) }
  }

  /// Calls `body` with each record of views whose names begin with `prefix`, ordered by the bytes of the views' names.
  static func forEach(
    in transaction: any ReadTransaction, prefix name: String = "",
    _ body: (_ name: String, _ record: Result<ViewRecord, any Error>) throws -> Void
  ) throws {
    guard let keyspace = try transaction.keyspace(named: DocumentStore.viewsKeyspace) else { return }
    try transaction.scan(keyspace, .prefix(key(name))) { key, value in
      let name = String(copying: key.extracting(droppingFirst: 1))
      let record: Result<ViewRecord, any Error>
      do { record = .success(try ViewRecord(value, of: name)) } catch { record = .failure(error) }
      try body(name, record)
      return true
    }
  }

  /// Stores the record.
  func write(_ name: String, in transaction: any WriteTransaction) throws {
    let keyspace = try ViewRecord.keyspace(in: transaction)
    try transaction.put(ViewRecord.key(name), encoded, in: keyspace)
  }

  private static func keyspace(in transaction: any WriteTransaction) throws -> Keyspace {
    if let keyspace = try transaction.keyspace(named: DocumentStore.viewsKeyspace) { return keyspace }
    return try transaction.createKeyspace(DocumentStore.viewsKeyspace, shape: .entries)
  }

  /// Takes the next number of a view.
  static func nextNumber(in transaction: any WriteTransaction) throws -> UInt32 {
    let keyspace = try keyspace(in: transaction)
    let last = try transaction.withValue(at: numberKey, in: keyspace) { value in
      var reader = ByteReader(value)
      guard let number = reader.varint(), number < UInt64(UInt32.max) else {
        throw ViewError(.damaged, "the number of the last view can't be read")
      }
      return UInt32(number)
    }
    let next = (last ?? 0) + 1
    var bytes = ByteBuffer(capacity: 16)
    bytes.append(varint: UInt64(next))
    try transaction.put(numberKey, [UInt8](bytes.bytes), in: keyspace)
    return next
  }

  /// Removes the record and the keyspaces. Returns false if there was none.
  static func delete(_ name: String, in transaction: any WriteTransaction) throws -> Bool {
    guard let record = try read(name, in: transaction) else { return false }
    try record.dropKeyspaces(in: transaction)
    let keyspace = try keyspace(in: transaction)
    return try transaction.delete(key(name).span.bytes, in: keyspace)
  }

  /// The number of keyspaces that views leave to what else a database stores.
  static let reservedKeyspaces = 50

  /// Throws `tooManyViews` unless there is room for so many more keyspaces of views.
  static func checkRoom(for count: Int, view: String?, in transaction: any ReadTransaction) throws {
    let most = StorageLimits.maximumKeyspaces - reservedKeyspaces
    guard try transaction.keyspaces().count + count > most else { return }
    throw ViewError(
      .tooManyViews,
      "the database has no room for it: its views may take \(most) keyspaces, three or more each; remove some views",
      view: view)
  }

  /// Whether the view seems to be one of a design document, whose map functions are named by a digest.
  var isOfDesign: Bool {
    mapVersion.count == 64
      && mapVersion.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }

  /// Removes the keyspaces of the rows.
  func dropKeyspaces(in transaction: any WriteTransaction) throws {
    for name in [rowsName, sourcesName, reductionsName, boxesName, textName, textName + ".blocks"] {
      if let keyspace = try transaction.keyspace(named: name) { try transaction.dropKeyspace(keyspace) }
    }
  }
}
