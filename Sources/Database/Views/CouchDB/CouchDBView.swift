import Bytes
import Documents
import Fleece
import Scripts
import Storage

/// A view as clients of CouchDB query it: `_design/DESIGN/_view/NAME`.
///
/// It is one of a design document, or one of this process with the name `DESIGN/NAME`. Errors are `CouchDBError`s where CouchDB
/// has one.
///
/// The rows of a map are read in slices of half a mebibyte, each from a snapshot of its own, and a slice is written after its snapshot has
/// ended. So whoever takes the answer slowly doesn't keep an engine from using freed space again. An answer of one slice shows
/// one moment; in a longer one the order of rows and the counts are those of its beginning, and rows that come, go or move meanwhile
/// may be there or not. Reduced rows, and those of a list of keys, are of one snapshot.
package struct CouchDBView: Sendable {
  private let view: View
  private let design: String
  /// Reads attachments for documents that have their data. Without it they have stubs.
  package var contents: CouchDBDocumentWriter.Contents?
  /// Whether somebody waits for the answer: an update with scripts, which may take long, ends otherwise.
  package var isWanted: @Sendable () -> Bool = { true }
  /// Only rows of documents whose IDs begin with these bytes; nil: of all.
  package var documentPrefix: [UInt8]?
  /// Runs each step that uses the database.
  package var around: @Sendable (() throws -> Void) throws -> Void = { try $0() }

  /// Finds a view. `design` is what follows `_design/` in the design document's ID.
  package init(_ design: String, _ name: String, in indexes: ViewIndexes) throws {
    self.design = design
    do {
      view = try View(ViewName.joined(design, name), indexes)
    } catch let error as ViewError where error.code == .invalidArgument {
      let views = try indexes.store.read { try $0.document(DesignDocument.idPrefix + design)?.value() }?[
        "views"]
      guard views?[name] != nil else { throw try CouchDBView.missing(design, indexes) }
      throw CouchDBError(400, "invalid_design_doc", error.message)
    }
    let view = view
    guard try CouchDBView.failing(design, indexes, { try view.hasMap }) else {
      throw try CouchDBView.missing(design, indexes)
    }
  }

  private static func missing(_ design: String, _ indexes: ViewIndexes) throws -> CouchDBError {
    let id = DesignDocument.idPrefix + design
    let document: Document?
    do { document = try indexes.store.read { try $0.document(id, includeDeleted: true) } } catch let error
      as DocumentError where error.code == .invalidDocumentID
    { document = nil }
    guard let document else { return CouchDBError(404, "not_found", "missing") }
    return CouchDBError(404, "not_found", document.isDeleted ? "deleted" : "missing_named_view")
  }

  /// Calls `body`, and throws what it throws as CouchDB has it.
  private static func failing<Result>(
    _ design: String, _ indexes: ViewIndexes, _ body: () throws -> Result
  ) throws -> Result {
    do { return try body() } catch let error as ViewError {
      switch error.code {
      case .invalidDesign:
        let document = try indexes.store.read { try $0.document(DesignDocument.idPrefix + design) }
        if let language = try document?.value().object?["language"]?.string,
          !indexes.languages.contains(where: { $0.name == language })
        {
          throw CouchDBError(500, "unknown_query_language", language)
        }
        throw CouchDBError(500, "compilation_error", error.message)
      case .scriptFailed: throw CouchDBError(500, "os_process_error", error.description)
      // It was deleted, or lost this view, while the query ran.
      case .notFound: throw try missing(design, indexes)
      case .tooManyViews: throw CouchDBError(507, "insufficient_storage", error.description)
      case .busy: throw CouchDBError(503, "service_unavailable", error.description)
      default: throw error
      }
    } catch let error as ViewKeyError {
      throw CouchDBError.query("\(error)")
    }
  }

  // MARK: Answers

  /// Runs a query and writes the answer piece by piece. It throws before the first piece, unless what is stored can't be read.
  package func answer(
    _ options: CouchDBViewOptions, _ write: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let output = PiecewiseOutput(write)
    try answer(options, to: output)
    output.append("\n")
    try output.flush()
  }

  /// Runs several queries one after another and writes their answers.
  package func answer(
    queries: [CouchDBViewOptions], _ write: @escaping (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    // What is wrong with any of them is said before the first piece.
    let reducer = try reducer()
    for options in queries {
      try Self.failing(design, view.indexes) {
        try options.selection(hasReducer: reducer != nil).checkRange(encoder())
      }
    }
    let output = PiecewiseOutput(write)
    output.append("{\"results\":[\r\n")
    for (index, options) in queries.enumerated() {
      if index > 0 { output.append(",\r\n") }
      try answer(options, to: output)
    }
    output.append("\r\n]}\n")
    try output.flush()
  }

  private func reducer() throws -> ViewReduce? {
    try Self.failing(design, view.indexes) { try view.reduce }
  }

  /// The view as its functions are now.
  private func member() throws -> GroupMember {
    let group = try view.indexes.group(of: view.name)
    guard let member = group.members.first(where: { $0.name.hasSameBytes(as: view.name) }) else {
      throw ViewError(.notFound, "it has no map function", view: view.name)
    }
    return member
  }

  private func encoder() throws -> ViewKeyEncoder { try ViewKeyEncoder(try member().collation) }

  private func answer(_ options: CouchDBViewOptions, to output: PiecewiseOutput) throws {
    try Self.failing(design, view.indexes) {
      let reducer = try view.reduce
      var selection = try options.selection(hasReducer: reducer != nil)
      selection.documentPrefix = documentPrefix
      try selection.checkRange(encoder())
      let slice = ViewSlice()
      var attempts = 0
      while !slice.isDone {
        if options.update == .before, !slice.hasBegun {
          try around { try view.indexes.update(view.name, isWanted: isWanted) }
        }
        let member = try member()
        try around {
          try view.indexes.store.read { snapshot in
            let reader = try ViewReader(view, reducer, snapshot)
            // The rows of another map function, or the reductions of another reducer, aren't the view's.
            let isCurrent = reader.map { reader in
              reader.record.mapVersion == member.mapVersion && reader.record.collation == member.collation
                && reader.record.reducer == member.storedReducer
            }
            if let reader, isCurrent == true {
              let answer = try CouchDBViewAnswer(
                reader, snapshot, view.indexes.store, options, contents: contents, output)
              return try answer.write(selection, slice)
            }
            attempts += 1
            if options.update == .before, !slice.hasBegun, attempts < 10 { return }
            guard options.update != .before, !slice.hasBegun else {
              throw ViewError(.busy, "its rows vanish again and again", view: view.name)
            }
            try CouchDBViewAnswer.writeEmpty(selection, view.indexes.store, options, to: output)
            slice.isDone = true
          }
        }
        if !slice.isDone { try output.flush() }
      }
      if options.update == .after { view.indexes.updateLater(view.name) }
    }
  }
}

/// Where the answer of a view goes on.
final class ViewSlice {
  var hasBegun = false
  var isDone = false
  /// The number of rows that are written.
  var rows = 0
  /// The row key of the last one.
  var last: [UInt8]?
}

/// Hands over what is written in pieces.
final class PiecewiseOutput {
  private static let pieceBytes = 64 << 10
  /// A slice ends when it has this many bytes.
  static let sliceBytes = 512 << 10
  private var bytes: [UInt8] = []
  private let write: (UnsafeRawBufferPointer) throws -> Void

  init(_ write: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.write = write
    bytes.reserveCapacity(PiecewiseOutput.pieceBytes + 4096)
  }

  /// Whether what waits is a slice.
  var isSlice: Bool { bytes.count >= PiecewiseOutput.sliceBytes }

  func append(_ text: StaticString) { text.withUTF8Buffer { bytes.append(contentsOf: $0) } }
  func append(_ text: [UInt8]) { bytes.append(contentsOf: text) }
  func append(_ span: RawSpan) { span.withUnsafeBytes { bytes.append(contentsOf: $0) } }
  func append(jsonString text: String) { bytes.append(jsonString: text) }
  func append(_ number: some BinaryInteger) { bytes.append(contentsOf: String(number).utf8) }

  /// Hands over a piece that is large enough.
  func step() throws { if bytes.count >= PiecewiseOutput.pieceBytes { try flush() } }

  func flush() throws {
    guard !bytes.isEmpty else { return }
    try bytes.withUnsafeBytes { try write($0) }
    bytes.removeAll(keepingCapacity: true)
  }
}
