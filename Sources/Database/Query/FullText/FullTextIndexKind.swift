import Documents
import FullText
import Storage

/// The kind of full-text indexes, for `DocumentStore.Options.indexKinds`.
package struct FullTextIndexKind: IndexKind {
  /// The name of this kind in databases.
  package static let name = "fulltext"
  /// The memory, in bytes, that a build may use for words before it stores them.
  package var memoryLimit: Int

  /// Creates the kind with a memory limit, in bytes, for builds.
  package init(memoryLimit: Int = 128 << 20) { self.memoryLimit = memoryLimit }

  /// The name of this kind in databases.
  package var name: String { FullTextIndexKind.name }

  /// Creates an index and adds all documents.
  package func create(
    _ index: IndexRecord, of documents: IndexedDocuments, in transaction: any WriteTransaction
  ) throws {
    let definition = try FullTextIndexDefinition(encoded: index.definition)
    let extractor = try FullTextExtractor(definition)
    extractor.begin(documents.sharedKeys)
    let writer = try InvertedIndexWriter.create(
      named: index.keyspaceName, columns: definition.expressions.count,
      analyzer: try TextAnalyzer(definition.options), in: transaction)
    writer.memoryLimit = memoryLimit
    // A scan can't write, so each round starts after the last document of the previous one.
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

  /// Opens an index for updates.
  package func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer {
    try FullTextIndexMaintainer(index, transaction)
  }

  /// Whether the words were made by the same versions of ICU and libstemmer as in this process.
  package func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool {
    let definition = try FullTextIndexDefinition(encoded: index.definition)
    return try InvertedIndexReader(named: index.keyspaceName, in: transaction).analysis
      == AnalysisVersion.text(of: definition.options)
  }
}
