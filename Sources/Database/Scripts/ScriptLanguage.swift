/// A language that design documents are written in. `JavaScript` is one.
package protocol ScriptLanguage: Sendable {
  /// The name, as the member `language` of design documents has it.
  var name: String { get }

  /// Compiles the functions of a design document, which is JSON. Throws `ScriptError`: `compilation` and
  /// `invalidDefinition` in CouchDB's words, `stopped`, `unavailable`.
  func open(designDocument: [UInt8]) throws -> any ScriptContext
}

/// A view of a design document.
package struct ScriptView: Sendable, Equatable {
  /// How a view reduces.
  package enum Reduce: Sendable, Equatable {
    /// It doesn't.
    case none
    /// With a function of the design document.
    case script
    /// With a built-in function: `_sum`, `_count`, `_stats`, `_approx_count_distinct`.
    case builtIn(String)
  }

  /// The view's name.
  package let name: String
  /// How it reduces.
  package let reduce: Reduce

  package init(name: String, reduce: Reduce) {
    self.name = name
    self.reduce = reduce
  }
}

/// What a validation function says of a change.
package enum ScriptVerdict: Sendable, Equatable {
  /// The change may be made, or there is no validation function.
  case allowed
  /// It may not.
  case forbidden(String)
  /// This user may not make it.
  case unauthorized(String)
}

/// The compiled functions of a design document.
///
/// Any thread may call, and waits for the answer. Calls throw `ScriptError`: `exception` when the function
/// threw, `stopped` when it took too long or too much memory, `unavailable` when it couldn't be run.
package protocol ScriptContext: AnyObject, Sendable {
  /// The views, in the design document's order.
  var views: [ScriptView] { get }

  /// Whether the design document has a validation function.
  var hasValidation: Bool { get }

  /// Begins to map documents with the views at these places of `views`. Doesn't wait for the answer, so that the
  /// caller prepares other documents meanwhile. Don't change the batch before `finish`.
  func beginMapping(_ batch: ScriptBatch, views: [Int]) throws -> any ScriptMapping

  /// Calls a view's reduce function. `keys` is a JSON array of `[key, document ID]`, and nil when the values
  /// are reductions. `values` is a JSON array. Returns JSON.
  func reduce(view: Int, keys: RawSpan?, values: RawSpan, rereduce: Bool) throws -> [UInt8]

  /// Returns which documents a filter of the design document chooses. `request` is a JSON object. `checkWanted` is called
  /// after each part of the batch, which takes a tenth of a second or one call, and ends the work by an error.
  func filter(
    _ name: String, _ batch: ScriptBatch, request: [UInt8], checkWanted: () throws -> Void
  ) throws -> [Bool]

  /// Returns for which documents a view's map emits.
  func filter(view name: String, _ batch: ScriptBatch, checkWanted: () throws -> Void) throws -> [Bool]

  /// Calls the validation function. All are JSON objects, and `old` is nil for a new document.
  func validate(_ document: [UInt8], old: [UInt8]?, user: [UInt8], security: [UInt8]) throws -> ScriptVerdict

  /// Frees what the functions hold. A context also does so when nobody holds it any more.
  func close()
}

/// A batch of documents that is being mapped.
package protocol ScriptMapping: AnyObject {
  /// The number of documents whose rows were returned.
  var documentCount: Int { get }

  /// Waits for rows, and returns those of the next documents of the batch: one at least, and not many more than 8 MiB or a
  /// tenth of a second gives. Returns nil after the last document. Throws `ScriptError.stopped`, with the document's ID,
  /// when a map was stopped: then the mapping has ended.
  func next() throws -> ScriptRows?
}

extension ScriptMapping {
  /// Waits for the rows of all documents that are left.
  package func finish() throws -> ScriptRows {
    var all: ScriptRows?
    while let rows = try next() {
      if all == nil { all = rows } else { all?.append(rows) }
    }
    return all ?? ScriptRows(viewCount: 0)
  }
}

extension ScriptContext {
  /// Maps documents, and waits.
  package func map(_ batch: ScriptBatch, views: [Int]) throws -> ScriptRows {
    try beginMapping(batch, views: views).finish()
  }
}
