import Bytes
import Documents
import Fleece
import Scripts
import Storage

/// A filter of a design document: a function `filters.NAME`, or a view whose map emits for the documents that are chosen.
///
/// The functions run in the child process, within its limits (docs/scripts.md). A filter is as the design document was
/// when it was made. Used from any thread.
package struct DesignFilter: Sendable {
  private enum Function: Sendable {
    case filter(String)
    case view(String)
  }

  private let context: any ScriptContext
  private let function: Function
  /// `DESIGN/NAME`, for error messages.
  private let name: String

  /// Finds the filter `DESIGN/NAME`. Throws a `ViewError`: `invalidArgument` for another form of name, `notFound` if there
  /// is no such design document, `invalidDesign`. That the function is missing or doesn't compile, the first call finds.
  package init(_ name: String, in indexes: ViewIndexes) throws {
    let parts = try DesignFilter.parts(name)
    self.init(try DesignFilter.context(parts.design, indexes), .filter(parts.view), name)
  }

  /// Finds the view `DESIGN/NAME`, to choose the documents that its map emits for.
  package init(view name: String, in indexes: ViewIndexes) throws {
    let parts = try DesignFilter.parts(name)
    self.init(try DesignFilter.context(parts.design, indexes), .view(parts.view), name)
  }

  private init(_ context: any ScriptContext, _ function: Function, _ name: String) {
    self.context = context
    self.function = function
    self.name = name
  }

  private static func parts(_ name: String) throws -> (design: String, view: String) {
    if let parts = ViewName.parts(of: name) { return parts }
    // A name with a percent sign as it is.
    let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
    guard parts.count == 2 else {
      throw ViewError(
        .invalidArgument, "the name of a filter must be DESIGN/FILTER, not '\(name.prefix(100))'")
    }
    return (parts[0], parts[1])
  }

  private static func context(_ design: String, _ indexes: ViewIndexes) throws -> any ScriptContext {
    guard let context = try indexes.functions(of: design) else {
      throw ViewError(
        .notFound, "there is no such design document", documentID: DesignDocument.idPrefix + design)
    }
    return context
  }

  /// Returns for each revision whether the filter chooses it. They are handed over in batches.
  ///
  /// `request` is what a filter gets as its second argument: CouchDB gives `query` with the parameters, and more of the
  /// request of HTTP. Throws a `ViewError`: `notFound` if there is no such function, `invalidDesign` if it doesn't compile,
  /// `filterFailed` if it throws, with the document, and `scriptFailed` if it was stopped. `checkWanted` is called between calls of
  /// the function, ten times a second at most, and ends the work by an error.
  package func choose(
    _ revisions: some Collection<ScriptedRevision>, request: JSONObject = ["query": [:]],
    checkWanted: () throws -> Void = {}
  ) throws -> [Bool] {
    let request = try JSONValue.object(request).jsonText()
    var chosen: [Bool] = []
    chosen.reserveCapacity(revisions.count)
    let batch = ScriptBatch()
    for revision in revisions {
      batch.append(id: revision.id, json: revision.json)
      if batch.isFull { try take(batch, request, &chosen, checkWanted) }
    }
    try take(batch, request, &chosen, checkWanted)
    return chosen
  }

  /// Returns for each document, tombstones too, whether the filter chooses its current revision; false for one that isn't
  /// there.
  package func choose(
    documents ids: some Collection<String>, in snapshot: DocumentSnapshot,
    request: JSONObject = ["query": [:]]
  ) throws -> [Bool] {
    let keys = try snapshot.sharedKeys
    var revisions: [ScriptedRevision] = []
    var isThere: [Bool] = []
    for id in ids {
      let found = try snapshot.withDocument(Array(id.utf8).span.bytes, includeDeleted: true) {
        try ScriptedRevision($0, sharedKeys: keys)
      }
      isThere.append(found != nil)
      if let found { revisions.append(found) }
    }
    var chosen = try choose(revisions, request: request).makeIterator()
    return isThere.map { $0 && chosen.next() ?? false }
  }

  private func take(
    _ batch: ScriptBatch, _ request: [UInt8], _ chosen: inout [Bool], _ checkWanted: () throws -> Void
  ) throws {
    defer { batch.removeAll() }
    do {
      switch function {
      case .filter(let filter):
        chosen += try context.filter(filter, batch, request: request, checkWanted: checkWanted)
      case .view(let view): chosen += try context.filter(view: view, batch, checkWanted: checkWanted)
      }
    } catch let error as ScriptError {
      let code: ViewError.Code =
        switch error.code {
        case .missing: .notFound
        case .compilation, .invalidDefinition, .unknownLanguage: .invalidDesign
        case .exception: .filterFailed
        case .stopped, .unavailable: .scriptFailed
        }
      throw ViewError(code, "filter '\(name)': \(error.message)", documentID: error.documentID)
    }
  }
}
