import Documents
import Fleece
import FullText
import Storage

/// Keeps one full-text index. One thread at a time.
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

  /// Packs it.
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
    // Other words than it was made of may be why it differs.
    let here = AnalysisVersion.text(of: definition.options)
    var note: String? =
      reader.analysis == here
      ? nil
      : "was made by \(reader.analysis.isEmpty ? "an unknown analysis" : reader.analysis), and here is \(here): open "
        + "the database for writing, which makes it anew"
    func report(_ wrong: String) throws {
      if let text = note { try check.report(subject, text) }
      note = nil
      try check.report(subject, wrong)
    }
    // The texts are looked up in the index while documents are scanned: some at a time.
    var range = KeyRange.all
    var isDone = false
    while !isDone {
      var batch: [(id: [UInt8], texts: [[UInt8]])] = []
      var bytes = 0
      isDone = true
      try documents.forEach(in: range, order: .ascending) { id, body in
        extractor.reset()
        let texts = id.withUnsafeBytes { extractor.texts($0, body.unsafeValue).map { [UInt8]($0) } }
        batch.append(([UInt8](copying: id), texts))
        bytes += texts.reduce(0) { $0 + $1.count }
        guard batch.count == 256 || bytes > 1 << 20 else { return true }
        isDone = false
        return false
      }
      for document in batch {
        try check.step()
        let wrong = try document.id.withUnsafeBytes { id in
          try FullTextIndexMaintainer.withBuffers(document.texts[...], []) { try proof.add(id, $0) }
        }
        if let wrong { try report(wrong) }
      }
      range.lower = .exclusive(batch.last?.id ?? [])
    }
    try proof.finish(report)
  }

  private static func withBuffers<Result>(
    _ texts: ArraySlice<[UInt8]>, _ buffers: [UnsafeRawBufferPointer],
    _ body: ([UnsafeRawBufferPointer]) throws -> Result
  ) throws -> Result {
    guard let first = texts.first else { return try body(buffers) }
    return try first.withUnsafeBytes { try withBuffers(texts.dropFirst(), buffers + [$0], body) }
  }
}
