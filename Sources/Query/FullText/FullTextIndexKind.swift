import Documents
import FullText
import Storage

/// Full-text indexes: how they are made and kept, for `DocumentStore.Options.indexKinds`.
public struct FullTextIndexKind: IndexKind {
  /// The name under which databases remember this kind.
  public static let name = "fulltext"
  /// How much memory the building of an index takes for words, in bytes, before they are stored.
  public var memoryLimit: Int

  /// The kind, with what memory a build may take.
  public init(memoryLimit: Int = 128 << 20) { self.memoryLimit = memoryLimit }

  /// The name under which databases remember this kind.
  public var name: String { FullTextIndexKind.name }

  /// Makes an index and fills it.
  public func create(
    _ index: IndexRecord, of documents: IndexedDocuments, in transaction: any WriteTransaction
  ) throws {
    let definition = try FullTextIndexDefinition(encoded: index.definition)
    let extractor = try FullTextExtractor(definition)
    extractor.begin(documents.sharedKeys)
    let writer = try InvertedIndexWriter.create(
      named: index.keyspaceName, columns: definition.expressions.count,
      analyzer: try TextAnalyzer(definition.options), in: transaction)
    writer.memoryLimit = memoryLimit
    // Nothing can be written inside of a scan, so each goes on behind the document that the last ended with.
    var range = KeyRange.all
    var isDone = false
    while !isDone {
      var last: [UInt8] = []
      isDone = true
      try documents.forEach(in: range, order: .ascending) { id, body in
        extractor.reset()
        try id.withUnsafeBytes {
          try writer.append($0, extractor.texts($0, body.unsafeValue), in: transaction)
        }
        guard writer.isFull else { return true }
        last = [UInt8](copying: id)
        isDone = false
        return false
      }
      range.lower = .exclusive(last)
      try writer.finish(in: transaction)
    }
  }

  /// What keeps an index.
  public func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer {
    try FullTextIndexMaintainer(index, transaction)
  }

  /// Whether its words were made by the ICU and the libstemmer that are here.
  public func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool {
    let definition = try FullTextIndexDefinition(encoded: index.definition)
    return try InvertedIndexReader(named: index.keyspaceName, in: transaction).analysis
      == AnalysisVersion.text(of: definition.options)
  }
}
