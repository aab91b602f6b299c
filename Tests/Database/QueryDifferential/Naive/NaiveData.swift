import Documents
import FullText
import FullTextReference
import Query
import TestSupport

/// A document as queries see it.
struct NaiveDocument {
  var id: String
  var body: JSONValue
  var sequence: UInt64
  var revisionID: String
  var isDeleted = false
  /// Milliseconds since 1970.
  var expiration: Int64?

  func meta(_ property: MetaProperty) -> JSONValue? {
    switch property {
    case .id: .string(id)
    case .sequence: JSONValue(sequence)
    case .deleted: .bool(isDeleted)
    case .expiration: expiration.map { .int($0) }
    case .revisionID: .string(revisionID)
    }
  }

  /// The whole of `META()`.
  var meta: JSONValue {
    var object = JSONObject()
    for property in MetaProperty.allCases {
      if let value = meta(property) { object[property.rawValue] = value }
    }
    return .object(object)
  }
}

/// What a query is asked of: documents in memory, tombstones among them, full-text indexes, and parameters.
final class NaiveData {
  let documents: [NaiveDocument]
  let fullText: [ByteString: NaiveFullText]
  var parameters = JSONObject()
  /// The indexes, also those of full text.
  var indexes: [NaiveIndex] = []

  init(_ documents: [NaiveDocument], fullText: [ByteString: FullTextIndexDefinition]) throws {
    self.documents = documents
    var indexes: [ByteString: NaiveFullText] = [:]
    for (name, definition) in fullText { indexes[name] = try NaiveFullText(definition, documents) }
    self.fullText = indexes
  }
}

/// A full-text index: the reference of `FullTextReference` over the texts of documents, which go by their numbers.
final class NaiveFullText {
  let definition: FullTextIndexDefinition
  private let analyzer: TextAnalyzer
  private var reference: ReferenceIndex
  private var found: [ByteString: [ByteString: Double]] = [:]
  private let documents: [NaiveDocument]

  init(_ definition: FullTextIndexDefinition, _ documents: [NaiveDocument]) throws {
    self.definition = definition
    self.documents = documents
    analyzer = try TextAnalyzer(definition.options)
    reference = try ReferenceIndex(
      columns: definition.columns, options: definition.options, weights: definition.weights ?? [])
    for (number, document) in documents.enumerated() where !document.isDeleted {
      let row = try NaiveFullText.row(document)
      if let condition = definition.condition, try !naiveIsTrue(condition, row) { continue }
      reference.set("\(number)", try texts(of: document))
    }
  }

  private static func row(_ document: NaiveDocument) throws -> NaiveRow {
    var row = NaiveRow(try NaiveData([], fullText: [:]))
    row.add(document, as: "_")
    return row
  }

  /// The text of each column.
  func texts(of document: NaiveDocument) throws -> [String] {
    let row = try NaiveFullText.row(document)
    return try definition.expressions.map { expression in
      NaiveFullText.text(try naive(expression, row)).reduce(into: "") { text, part in
        text += (text.isEmpty ? "" : " ") + part
      }
    }
  }

  private static func text(_ value: JSONValue?) -> [String] {
    switch value {
    case nil, .null?, .data?: []
    case .string(let text)?: [text]
    case .bool(let value)?: [value ? "T" : "F"]
    case .array(let items)?: items.flatMap { text($0) }
    case .object(let object)?: naiveMembers(object).flatMap { text($0.value) }
    case let number?: [naiveJSON(number)]
    }
  }

  /// The ranks of the documents that match, by ID.
  func search(_ text: JSONValue?) throws -> [ByteString: Double] {
    guard let text = text?.string else { return [:] }
    if let known = found[ByteString(text)] { return known }
    var ranks: [ByteString: Double] = [:]
    for result in try reference.search(text) {
      if let number = Int(result.id) { ranks[ByteString(documents[number].id)] = result.rank }
    }
    found[ByteString(text)] = ranks
    return ranks
  }

  /// Calls `body` with what shows hits, and the texts of a document.
  func highlighting<Result>(
    _ text: String, _ document: NaiveDocument,
    _ body: (Highlighter, [UnsafeRawBufferPointer]) throws -> Result
  ) throws -> Result {
    let query = try MatchQuery(parsing: text, columns: definition.columns, analyzer: analyzer)
    let highlighter = Highlighter(query, analyzer: analyzer)
    func with(_ texts: ArraySlice<String>, _ buffers: [UnsafeRawBufferPointer]) throws -> Result {
      guard let first = texts.first else { return try body(highlighter, buffers) }
      let bytes = Array(first.utf8)
      return try bytes.withUnsafeBytes { try with(texts.dropFirst(), buffers + [$0]) }
    }
    return try with(try texts(of: document)[...], [])
  }
}
