import Bytes
import Documents
import Fleece
import Scripts
import Storage

/// A view as clients of CouchDB query it: `_design/DESIGN/_view/NAME`.
///
/// It is one of a design document, or one of this process with the name `DESIGN/NAME`. Errors are `CouchDBError`s where CouchDB
/// has one.
package struct CouchDBView: Sendable {
  private let view: View
  private let design: String

  /// Finds a view. `design` is what follows `_design/` in the design document's ID.
  package init(_ design: String, _ name: String, in indexes: ViewIndexes) throws {
    self.design = design
    do {
      view = try View(design + "/" + name, indexes)
    } catch let error as ViewError where error.code == .invalidArgument {
      throw CouchDBError(404, "not_found", "missing_named_view")
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
      case .scriptFailed: throw CouchDBError(500, "os_process_error", error.message)
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
      let selection = try options.selection(hasReducer: reducer != nil)
      try selection.checkRange(encoder())
      var attempts = 0
      while true {
        if options.update == .before { try view.indexes.update(view.name) }
        let member = try member()
        let isDone = try view.indexes.store.read { snapshot in
          let reader = try ViewReader(view, reducer, snapshot)
          // The rows of another map function, or the reductions of another reducer, aren't the view's.
          let isCurrent = reader.map { reader in
            reader.record.mapVersion == member.mapVersion && reader.record.collation == member.collation
              && reader.record.reducer == member.storedReducer
          }
          guard let reader, isCurrent == true else {
            attempts += 1
            if options.update == .before, attempts < 10 { return false }
            guard options.update != .before else {
              throw ViewError(.busy, "its rows vanish again and again", view: view.name)
            }
            try CouchDBViewAnswer.writeEmpty(selection, options, to: output)
            return true
          }
          try CouchDBViewAnswer(reader, snapshot, view.indexes.store, options, output).write(selection)
          return true
        }
        if isDone { break }
      }
      if options.update == .after { view.indexes.updateLater(view.name) }
    }
  }
}

/// Hands over what is written in pieces.
final class PiecewiseOutput {
  private static let pieceBytes = 64 << 10
  private var bytes: [UInt8] = []
  private let write: (UnsafeRawBufferPointer) throws -> Void

  init(_ write: @escaping (UnsafeRawBufferPointer) throws -> Void) {
    self.write = write
    bytes.reserveCapacity(PiecewiseOutput.pieceBytes + 4096)
  }

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
