import Documents
import FullText

/// A map function: emits the rows of one document.
///
/// It must depend on nothing but the document: no other state, no time, no chance. The rows of a document are made
/// once, and kept until the document changes. It is called on any thread, one document at a time. What it emitted before
/// it throws stays; the error is reported with the document's ID (`View.lastUpdate`), and other documents go on.
public typealias ViewMap = @Sendable (_ document: MappedDocument, _ emit: ViewEmitter) throws -> Void

/// When a query brings the index up to date.
public enum ViewUpdateMode: Sendable, Hashable, CaseIterable {
  /// Before the query, if documents have changed.
  case before
  /// Not at all. A view that was never indexed is indexed nevertheless.
  case never
  /// After the query, in the background. A view that was never indexed is indexed first.
  case after
}

/// What a view is made of in this process.
struct ViewDefinition: Sendable {
  var map: ViewMap
  var mapVersion: [UInt8]
  var collation: ViewCollation
  var documentType: [UInt8]?
  /// That of text keys.
  var language: FullTextLanguage?
}
