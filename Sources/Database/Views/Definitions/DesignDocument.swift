import Bytes
import Documents
import Fleece
import Scripts
import Storage

/// A design document with its functions compiled: `_design/x` with `views`, `filters` and `validate_doc_update`
/// (docs/views.md).
package final class DesignDocument: Sendable {
  /// What follows `_design/` in its ID.
  package let name: String
  /// The revision that was compiled; nil for one that isn't stored.
  package let revisionID: RevisionID?
  /// The language of its functions.
  let language: String
  package let context: any ScriptContext
  let options: MapOptions
  let members: [GroupMember]
  /// The reducers, in the order of the members.
  let reduces: [ViewReduce?]

  static let idPrefix = "_design/"

  /// The number of the rules by which rows are made of what functions emit. Another one builds the views again.
  private static let rules: Int64 = 3

  /// What follows `_design/` in an ID, compared by bytes; nil if it is no ID of a design document.
  static func name(ofID id: String) -> String? {
    let utf8 = id.utf8
    guard utf8.starts(with: idPrefix.utf8) else { return nil }
    return String(utf8.dropFirst(idPrefix.utf8.count))
  }

  init(
    _ name: String, revisionID: RevisionID?, _ body: JSONObject, languages: [any ScriptLanguage]
  ) throws {
    self.name = name
    self.revisionID = revisionID
    let language = body["language"]?.string ?? "javascript"
    self.language = language
    guard let known = languages.first(where: { $0.name == language }) else {
      throw ViewError(
        .invalidDesign, "no language '\(language)' is known", documentID: DesignDocument.idPrefix + name)
    }
    do {
      context = try known.open(designDocument: try JSONValue.object(body).jsonText())
    } catch let error as ScriptError {
      throw ViewError(
        error.code == .compilation || error.code == .invalidDefinition ? .invalidDesign : .scriptFailed,
        error.message,
        documentID: DesignDocument.idPrefix + name)
    }
    let settings = body["options"]?.object
    var options = MapOptions()
    options.hasSequence = settings?["local_seq"]?.bool ?? false
    options.hasDeletedConflicts = true
    options.includesDesign = settings?["include_design"]?.bool ?? false
    self.options = options
    let views = body["views"]?.object
    // All that the rows depend on. Reducers aren't a part of it.
    let common = JSONValue.object([
      "language": .string(language), "lib": views?["lib"] ?? .null, "options": body["options"] ?? .null,
      "rules": .int(DesignDocument.rules),
    ])
    var members: [GroupMember] = []
    var reduces: [ViewReduce?] = []
    for (index, view) in context.views.enumerated() {
      let definition = views?[view.name]?.object
      // The order of the keys is the view's own affair: what the design document says of it doesn't count, as in CouchDB.
      let collation: ViewCollation =
        switch definition?["options"]?.object?["collation"]?.string {
        case "raw": .raw
        case "ascii": .ascii
        default: .root
        }
      let map = JSONValue.object([
        "common": common, "collation": .int(Int64(collation.rawValue)), "map": definition?["map"] ?? .null,
        "columns": (context as? MangoContext)?.columns(view: index) ?? .null,
      ])
      let reduce: ViewReduce?
      switch view.reduce {
      case .none: reduce = nil
      case .builtIn(let function): reduce = ViewReduce.builtIn(function)
      case .script:
        let text = JSONValue.object(["common": common, "reduce": definition?["reduce"] ?? .null])
        let viewName = ViewName.joined(name, view.name)
        let (context, view) = (context, index)
        let limit = ReduceLimit(function: definition?["reduce"]?.string ?? "")
        reduce = .script(identity: try DesignDocument.digest(text)) { keys, values, rereduce in
          let result: [UInt8]
          do {
            result = try context.reduce(
              view: view, keys: rereduce ? nil : keys.span.bytes, values: values.span.bytes,
              rereduce: rereduce)
          } catch let error as ScriptError where error.code == .stopped || error.code == .unavailable {
            throw ViewError(.scriptFailed, "its reduce function: \(error.message)", view: viewName)
          }
          try limit.check(result, keys: keys, values: values, rereduce: rereduce)
          return result
        }
      }
      reduces.append(reduce)
      members.append(
        GroupMember(
          name: ViewName.joined(name, view.name), map: try (context as? MangoContext)?.map(view: index),
          mapVersion: Array(try DesignDocument.digest(map).utf8),
          collation: collation, documentType: nil, reducer: reduce?.reducer))
    }
    self.members = members
    self.reduces = reduces
  }

  /// A digest of the functions of all views.
  var signature: String {
    get throws {
      let versions = members.map { JSONValue.string(String(decoding: $0.mapVersion, as: UTF8.self)) }
      return try DesignDocument.signature(of: .array(versions))
    }
  }

  /// 32 hexadecimal digits that differ for other values.
  static func signature(of value: JSONValue) throws -> String { String(try digest(value).prefix(32)) }

  private static func digest(_ value: JSONValue) throws -> String {
    let text = Array(try value.canonicalJSON().utf8)
    var digest = [UInt8](repeating: 0, count: 32)
    try text.withUnsafeBytes { text in
      try digest.withUnsafeMutableBytes { target in
        guard let start = target.baseAddress else { return }
        try KeyDigest().sha256(of: text, into: start)
      }
    }
    return Hex.text(digest)
  }

  /// How the views are updated together. Log entries name `path`. `checkWanted` throws when nobody wants the rows any more.
  func group(path: String, checkWanted: @escaping () throws -> Void = {}) -> UpdateGroup {
    let (members, context, options) = (members, context, options)
    if context is MangoContext {
      return UpdateGroup(members: members, options: options) { encoders, report in
        ClosureMapper(members, encoders, report: report)
      }
    }
    return UpdateGroup(members: members, options: options) { encoders, report in
      ScriptMapper(
        members, views: Array(members.indices), encoders, context, options, path: path,
        checkWanted: checkWanted,
        report: report)
    }
  }

  /// The reducer of a view, by the view's whole name; the outer nil if there is no such view.
  func reduce(of name: String) -> ViewReduce?? {
    guard let index = members.firstIndex(where: { $0.name.hasSameBytes(as: name) }) else { return .none }
    return .some(reduces[index])
  }
}
