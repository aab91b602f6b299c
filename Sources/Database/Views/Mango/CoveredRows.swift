import Bytes
import Documents
import Fleece

/// What the rows of an index tell of their documents, for a query that asks for no more. Rows with equal keys follow each other, so what
/// a key tells is found out once. Used on one thread at a time.
final class CoveredRows {
  private let matcher: MangoMatcher
  private let fields: [String]
  /// The columns but for the document's ID, with their places in a key. Of columns with the same name the last one counts.
  private let columns: [(place: Int, name: String)]
  /// Whether the selector asks for the document's ID, so that documents with equal keys may differ.
  private let asksForID: Bool

  private let encoder = BodyEncoder()
  private let names = SharedKeysBuilder(.empty)
  /// An object with the values of a key.
  private var object = JSONWriter()

  // What the last key tells.
  private var key: [UInt8] = []
  private var isKnown = false
  /// The object, in the encoder's memory.
  private var body: UnsafeValue?
  private var passes = false
  /// The answer for its documents without their ID, which is wanted at `idPlace`.
  private var answer = JSONWriter()
  private var idPlace: Int?
  private var isAnswerKnown = false

  /// The columns of the index have to be names, not paths. Each field is a name, too, and stands once.
  init(_ index: MangoIndex, _ selector: MangoSelector, fields: [String], _ matcher: MangoMatcher) {
    self.matcher = matcher
    self.fields = fields
    columns = index.columns.indices.compactMap { place in
      let field = index.columns[place].field
      guard !field.isID, !index.columns[(place + 1)...].contains(where: { $0.field == field }) else {
        return nil
      }
      return (place, field.parts[0])
    }
    asksForID = selector.names?.contains("_id") ?? true
  }

  /// Whether the document with a row passes. That means nothing if the matcher was cancelled.
  func passes(key json: RawSpan, id: [UInt8]) throws -> Bool {
    let isSame =
      isKnown && json.withUnsafeBytes { json in key.withUnsafeBytes { compareBytes(json, $0) == 0 } }
    if !isSame { try json.withUnsafeBytes { try take($0) } }
    if !isSame || asksForID {
      guard let body else { throw StoredRow.damaged }
      passes = id.withUnsafeBytes { matcher.matches(id: $0, body, names.snapshot()) }
      isKnown = !matcher.wasCancelled
    }
    return passes
  }

  /// Reads a key.
  private func take(_ json: UnsafeRawBufferPointer) throws {
    isKnown = false
    isAnswerKnown = false
    key.removeAll(keepingCapacity: true)
    key.append(contentsOf: json)
    object.removeAll()
    var scanner = JSONScanner(json, nil, invalid: StoredRow.damaged)
    var (place, column) = (0, 0)
    try scanner.array { scanner in
      let value = try scanner.value()
      if column < columns.count, columns[column].place == place {
        object.append(byte: UInt8(ascii: column == 0 ? "{" : ","))
        object.append(string: columns[column].name)
        object.append(byte: UInt8(ascii: ":"))
        object.append(json: UnsafeRawBufferPointer(rebasing: json[value]))
        column += 1
      }
      place += 1
    }
    if column == 0 { object.append(byte: UInt8(ascii: "{")) }
    object.append(byte: UInt8(ascii: "}"))
    do {
      try object.withBytes { try encoder.encode(json: $0, keys: names, withCanonicalJSON: false) }
    } catch { throw StoredRow.damaged }
    body = FleeceReader.root(of: encoder.fleece)
  }

  /// Appends the wanted fields of the document with the last row.
  func append(id: [UInt8], to json: inout JSONWriter) throws {
    if !isAnswerKnown { try makeAnswer() }
    let end = idPlace ?? answer.count
    answer.withBytes { json.append(json: UnsafeRawBufferPointer(rebasing: $0[..<end])) }
    guard idPlace != nil else { return }
    id.withUnsafeBytes { json.append(string: $0) }
    answer.withBytes { json.append(json: UnsafeRawBufferPointer(rebasing: $0[end...])) }
  }

  private func makeAnswer() throws {
    let sharedKeys = names.snapshot()
    answer.removeAll()
    idPlace = nil
    var separator = UInt8(ascii: "{")
    for field in fields {
      let isID = field.hasSameBytes(as: "_id")
      let value = isID ? nil : body?.value(of: field, sharedKeys: sharedKeys)
      guard isID || value != nil else { continue }
      answer.append(byte: separator)
      separator = UInt8(ascii: ",")
      answer.append(string: field)
      answer.append(byte: UInt8(ascii: ":"))
      if let value { try answer.append(value, sharedKeys: sharedKeys) } else { idPlace = answer.count }
    }
    if separator == UInt8(ascii: "{") { answer.append(byte: separator) }
    answer.append(byte: UInt8(ascii: "}"))
    isAnswerKnown = true
  }
}
