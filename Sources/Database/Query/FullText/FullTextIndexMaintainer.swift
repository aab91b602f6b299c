import Documents
import Fleece
import FullText
import Storage

/// Updates one full-text index. Use it from one thread at a time.
final class FullTextIndexMaintainer: IndexMaintainer {
  private let definition: FullTextIndexDefinition
  private let extractor: FullTextExtractor
  private let keyspaceName: String
  private var writer: InvertedIndexWriter?
  private var knownKeys = -1

  init(_ index: IndexRecord, _ transaction: any ReadTransaction) throws {
    definition = try FullTextIndexDefinition(encoded: index.definition)
    extractor = try FullTextExtractor(definition)
    keyspaceName = index.keyspaceName
    _ = try InvertedIndexKeyspaces(named: keyspaceName, in: transaction)
  }

  func update(_ change: IndexedChange, in transaction: any WriteTransaction) throws {
    if change.sharedKeys.count != knownKeys {
      extractor.begin(change.sharedKeys.snapshot())
      knownKeys = change.sharedKeys.count
    }
    extractor.reset()
    let old = change.old.map { extractor.texts(change.documentID, $0) } ?? []
    let new = change.new.map { extractor.texts(change.documentID, $0) } ?? []
    if old.allSatisfy(\.isEmpty), new.allSatisfy(\.isEmpty) { return }
    let writer = try writer(transaction)
    try writer.update(change.documentID, old: old, new: new, in: transaction)
  }

  var hasPendingChanges: Bool { writer?.hasPendingChanges ?? false }

  func finish(in transaction: any WriteTransaction) throws {
    try writer?.finish(in: transaction)
  }

  /// Compacts the index.
  func refreshStatistics(in transaction: any WriteTransaction) throws {
    try writer(transaction).compact(in: transaction)
  }

  private func writer(_ transaction: any ReadTransaction) throws -> InvertedIndexWriter {
    if let writer { return writer }
    let opened = try InvertedIndexWriter(
      named: keyspaceName, analyzer: try TextAnalyzer(definition.options), in: transaction)
    writer = opened
    return opened
  }

  func check(_ documents: IndexedDocuments, _ check: IntegrityCheck, subject: String) throws {
    extractor.begin(documents.sharedKeys)
    knownKeys = -1
    let reader = try InvertedIndexReader(named: keyspaceName, in: check.transaction)
    let proof = try InvertedIndexCheck(reader, analyzer: try TextAnalyzer(definition.options))
    // A difference may come from another version of the text analysis.
    let here = AnalysisVersion.text(of: definition.options)
    var note: String? =
      reader.analysis == here
      ? nil
      : "was made by \(reader.analysis.isEmpty ? "an unknown analysis" : reader.analysis), and here is \(here): open "
        + "the database for writing, which makes it again"
    func report(_ wrong: String) throws {
      if let text = note { try check.report(subject, text) }
      note = nil
      try check.report(subject, wrong)
    }
    // The texts are looked up in the index while their document is lent.
    try documents.forEach(in: .all, order: .ascending) { id, body in
      try check.step()
      extractor.reset()
      let wrong = try id.withUnsafeBytes { try proof.add($0, extractor.texts($0, body.unsafeValue)) }
      if let wrong { try report(wrong) }
      return true
    }
    try proof.finish(report)
  }
}
