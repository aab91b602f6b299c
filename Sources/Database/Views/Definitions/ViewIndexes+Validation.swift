import Bytes
import Documents
import Fleece
import Scripts
import Storage

/// Why a validation function of a design document refuses a change.
public struct ValidationRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of refusal.
  public enum Code: String, Sendable {
    /// Nobody may make the change.
    case forbidden
    /// This user may not make it.
    case unauthorized
  }

  /// The kind of refusal.
  public let code: Code
  /// What the function threw.
  public let message: String
  /// The document that was to be changed.
  public let documentID: String
  /// The ID of the design document.
  public let designID: String

  /// The message and the documents.
  public var description: String {
    "\(message) (\(code.rawValue) by '\(designID)', document '\(documentID)')"
  }
}

/// Who makes a change, for validation functions.
package struct ValidationUser: Sendable {
  /// The third argument, `userCtx`. CouchDB gives `db`, `name` (null without one) and `roles`.
  package var context: JSONObject
  /// The fourth one, `secObj`: the database's security object.
  package var security: JSONObject

  /// Makes one of a name and roles.
  package init(database: String, name: String?, roles: [String] = [], security: JSONObject = [:]) {
    context = [
      "db": .string(database), "name": name.map { .string($0) } ?? .null,
      "roles": .array(roles.map { .string($0) }),
    ]
    self.security = security
  }
}

extension ViewIndexes {
  /// Lets the validation functions of all design documents, in the order of their IDs, look at a change before it is
  /// stored. Changes of design documents themselves are allowed, as in CouchDB.
  ///
  /// `old` is the revision that the new one replaces, nil if there is none; the caller gives nil for a tombstone. Throws
  /// `ValidationRefusal` if a function refuses, and a `ViewError` if one can't be run: `validationFailed` if it throws
  /// another error, `invalidDesign` if it doesn't compile, `scriptFailed` if it was stopped. The change must not be stored
  /// then. Used from any thread.
  package func validate(_ new: ScriptedRevision, replacing old: ScriptedRevision?, by user: ValidationUser)
    throws
  {
    guard DesignDocument.name(ofID: new.id) == nil else { return }
    let names = try validatingDesigns()
    guard !names.isEmpty else { return }
    let context = try JSONValue.object(user.context).jsonText()
    let security = try JSONValue.object(user.security).jsonText()
    for name in names {
      let designID = DesignDocument.idPrefix + name
      do {
        let verdict = try functions(of: name)?.validate(
          new.json, old: old?.json, user: context, security: security)
        switch verdict {
        case nil, .allowed: break
        case .forbidden(let message):
          throw ValidationRefusal(code: .forbidden, message: message, documentID: new.id, designID: designID)
        case .unauthorized(let message):
          throw ValidationRefusal(
            code: .unauthorized, message: message, documentID: new.id, designID: designID)
        }
      } catch let error as ScriptError {
        let code: ViewError.Code =
          switch error.code {
          case .compilation, .invalidDefinition, .unknownLanguage, .missing: .invalidDesign
          case .exception: .validationFailed
          case .stopped, .unavailable: .scriptFailed
          }
        throw ViewError(code, "validation function of '\(designID)': \(error.message)", documentID: new.id)
      }
    }
  }

  /// Whether a design document has a validation function.
  package var validatesChanges: Bool { get throws { try !validatingDesigns().isEmpty } }

  /// The names of the design documents that have a validation function.
  private func validatingDesigns() throws -> [String] {
    try store.read { snapshot in
      let keys = try snapshot.sharedKeys
      var names: [String] = []
      try snapshot.forEachDocument(in: .prefix(DocumentID.designPrefix), order: .ascending) { document in
        if document.body?.value(of: "validate_doc_update", sharedKeys: keys)?.type == .string,
          let name = DesignDocument.name(ofID: document.id)
        {
          names.append(name)
        }
        return true
      }
      return names
    }
  }
}
