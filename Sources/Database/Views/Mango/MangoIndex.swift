import Documents
import Fleece

// An index of `_find` is a view of a design document whose language is "query":
//
//   "views": { NAME: {
//     "map":     { "fields": { FIELD: "asc" | "desc", … }, "partial_filter_selector": selector },
//     "reduce":  "_count",
//     "options": { "def": { "fields": [ FIELD | { FIELD: "asc" | "desc" }, … ], "partial_filter_selector": selector } } } }
//
// A document that passes the filter and has all fields emits one row, whose key is the array of their values. The order of the columns is
// that of the array in "def", because members of stored objects have no order. Without it, the columns are in the order of their names.

/// An index that `_find` may use.
package struct MangoIndex: Sendable {
  /// A column.
  package struct Column: Sendable {
    package let name: String
    package let field: MangoField
    /// `asc` or `desc`. Rows are in ascending order in any case.
    package let direction: String
  }

  /// The ID of its design document; nil for the list of all documents.
  package let designID: String?
  package let name: String
  package let columns: [Column]
  /// Which documents it has; nil for all that have its columns.
  package let filter: OrderedJSON?
  /// Whether only queries of one partition may use it. Others may be used only by those of the whole database.
  package private(set) var isPartitioned = false
  /// The revision of its design document, if it was read from the database.
  var revisionID: RevisionID?

  /// The list of all documents, in the order of their IDs' bytes.
  package static func allDocuments() throws -> MangoIndex {
    let id = Column(name: "_id", field: try MangoField("_id"), direction: "asc")
    return MangoIndex(designID: nil, name: "_all_docs", columns: [id], filter: nil)
  }

  package var isOfAllDocuments: Bool { designID == nil }

  /// What follows `_design/` in the design document's ID.
  package var design: String { designID.flatMap { DesignDocument.name(ofID: $0) } ?? "" }

  private init(designID: String?, name: String, columns: [Column], filter: OrderedJSON?) {
    self.designID = designID
    self.name = name
    self.columns = columns
    self.filter = filter
  }

  /// Reads a view of a design document. Nil if it isn't an index, or one that can't be read.
  package init?(designID: String?, name: String, view: JSONValue) {
    guard let map = view.object?["map"]?.object, let fields = map["fields"]?.object else { return nil }
    let definition = view.object?["options"]?.object?["def"]?.object?["fields"]?.array ?? []
    var names = definition.compactMap { $0.string ?? $0.object?.keys.first }
    let sorted = fields.keys.sortedByBytes()
    if names.sortedByBytes().map({ Array($0.utf8) }) != sorted.map({ Array($0.utf8) }) { names = sorted }
    var columns: [Column] = []
    for name in names {
      guard let field = try? MangoField(name) else { return nil }
      columns.append(Column(name: name, field: field, direction: fields[name]?.string ?? "asc"))
    }
    var filter = map["partial_filter_selector"].map { OrderedJSON(sorting: $0) }
    if filter?.members?.isEmpty ?? false { filter = nil }
    if let filter, (try? MangoSelector(filter)) == nil { return nil }
    self.init(designID: designID, name: name, columns: columns, filter: filter)
  }

  /// Reads the indexes of a design document, in the order of their names. In a partitioned database they are partitioned unless the design
  /// document says otherwise.
  package static func all(
    designID: String, _ body: JSONObject, inPartitionedDatabase: Bool = false
  ) -> [MangoIndex] {
    guard body["language"]?.string == MangoLanguage.name, let views = body["views"]?.object else { return [] }
    let isPartitioned =
      inPartitionedDatabase && body["options"]?.object?["partitioned"]?.bool ?? true
    return views.keys.sortedByBytes().compactMap { name in
      var index = MangoIndex(designID: designID, name: name, view: views[name] ?? .null)
      index?.isPartitioned = isPartitioned
      return index
    }
  }

  /// What `_index` and `_explain` show of it.
  package var json: OrderedJSON {
    let columns = columns.map {
      OrderedJSON.object([.init(name: $0.name, value: .scalar(.string($0.direction)))])
    }
    var definition: [OrderedJSON.Member] = [.init(name: "fields", value: .array(columns))]
    if let filter, let selector = try? MangoSelector(filter) {
      definition.append(.init(name: "partial_filter_selector", value: selector.json))
    }
    var members: [OrderedJSON.Member] = [
      .init(name: "ddoc", value: designID.map { .scalar(.string($0)) } ?? nil),
      .init(name: "name", value: .scalar(.string(name))),
      .init(name: "type", value: isOfAllDocuments ? "special" : "json"),
    ]
    if !isOfAllDocuments {
      members.append(.init(name: "partitioned", value: .scalar(.bool(isPartitioned))))
    }
    members.append(.init(name: "def", value: .object(definition)))
    return .object(members)
  }

  /// Whether its rows, with the documents' IDs, have all of these fields.
  func covers(_ fields: [String]?) -> Bool {
    guard let fields, !isOfAllDocuments else { return false }
    return fields.allSatisfy { field in
      field == "_id" || columns.contains { $0.name.utf8.elementsEqual(field.utf8) }
    }
  }
}
