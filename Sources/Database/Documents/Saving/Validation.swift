// Validation functions, as in Couchbase Lite 1.x: code of the app that sees each new revision before it is stored and
// may reject it.

import Fleece

/// Checks a new revision, and rejects it with `ValidationContext.reject(_:)` or by throwing an error.
///
/// It runs inside the write transaction, on the thread that writes. It may read the database. A write inside it
/// throws `writeInScan`.
public typealias Validation = @Sendable (ValidatedRevision, ValidationContext) throws -> Void

/// A revision that is about to be stored.
public struct ValidatedRevision: Sendable {
  /// The document's ID.
  public let documentID: String
  /// The new body. Of a tombstone, the properties that it keeps.
  public let body: JSONValue
  /// Whether the revision is a tombstone.
  public let isDeleted: Bool
  /// Whether the revision comes from another database (`Database.apply`).
  public let isFromSync: Bool
  /// The ID of the parent revision, nil if there is none.
  public let parentRevisionID: RevisionID?
}

/// What a validation function knows besides the new revision. It is valid until the function returns.
public final class ValidationContext {
  /// The document as it is stored now, possibly a tombstone. Nil if there is none.
  ///
  /// A revision from another database, and a save that may conflict, need not descend from its revision.
  public let currentRevision: Document?
  private let body: JSONValue
  /// The message of the first rejection.
  private(set) var rejection: String?

  init(_ current: Document?, _ body: JSONValue) {
    currentRevision = current
    self.body = body
  }

  /// Rejects the revision. The save throws `DocumentError` with the code `rejected` and this message, and
  /// nothing has changed. Of several calls, the first counts.
  public func reject(_ message: String = "it isn't valid") { if rejection == nil { rejection = message } }

  /// Returns the names of the top-level properties that the new body has added, changed or removed, ordered by
  /// their bytes. Throws `damaged` when the stored body can't be read.
  public func changedKeys() throws -> [String] {
    let old = try currentRevision?.value().object ?? JSONObject()
    let new = body.object ?? JSONObject()
    var changed = new.keys.filter { new[$0] != old[$0] }
    changed += old.keys.filter { new[$0] == nil }
    return changed.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}

/// A validation function and its name.
struct NamedValidation: Sendable {
  let name: String
  let validation: Validation
}

extension DocumentStore {
  /// Sets or removes the validation function with this name, from the next transaction on.
  package func setValidation(_ name: String, _ validation: Validation?) {
    validations.withLock { validations in
      validations.removeAll { $0.name.utf8.elementsEqual(name.utf8) }
      if let validation { validations.append(NamedValidation(name: name, validation: validation)) }
      validations.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      hasValidations.store(!validations.isEmpty, ordering: .releasing)
    }
  }

  /// Returns the validation function with this name, or nil.
  package func validation(_ name: String) -> Validation? {
    validations.withLock { $0.first { $0.name.utf8.elementsEqual(name.utf8) }?.validation }
  }

  /// The validation functions for a transaction that begins. Without any, it is one check of a flag.
  var currentValidations: [NamedValidation] {
    hasValidations.load(ordering: .acquiring) ? validations.withLock { $0 } : []
  }
}

extension DocumentWriter {
  /// Calls the validation functions for a revision on top of the node `parent`. Throws `rejected`, or the error
  /// of a function. Called before anything has changed.
  func validate(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody, deleted: Bool, parent: Int, stored: Stored?
  ) throws {
    guard !validations.isEmpty else { return }
    let documentID = idText(id)
    let sharedKeys = keys.snapshot()
    guard let root = body.root else { return }
    let value = try undamaged { () throws(FleeceError) in try root.jsonValue(sharedKeys: sharedKeys) }
    let revision = ValidatedRevision(
      documentID: documentID, body: value, isDeleted: deleted, isFromSync: body.isForeign,
      parentRevisionID: parent < 0 ? nil : tree.revisionID(of: parent))
    let current =
      stored == nil
      ? nil : try Document(id: documentID, record: self.stored.bytes.bytes, sharedKeys: sharedKeys)
    isValidating = true
    defer { isValidating = false }
    for named in validations {
      let context = ValidationContext(current, value)
      try named.validation(revision, context)
      if let message = context.rejection {
        throw DocumentError(
          .rejected, "the validation \"\(named.name)\" rejected the revision: \(message)",
          documentID: documentID)
      }
    }
  }
}
