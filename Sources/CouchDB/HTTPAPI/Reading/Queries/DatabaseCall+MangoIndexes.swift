import Bytes
import Fleece
import HTTP
import Touchstone
import Views

// `_index`: the indexes of `_find`. They are views of design documents whose language is "query".

extension DatabaseCall {
  /// The answer to `GET` and `POST` of `_index`.
  func mangoIndexes() throws -> HTTPAnswer { try method == "POST" ? makeIndex() : listIndexes() }

  private func listIndexes() throws -> HTTPAnswer {
    let indexes = try database.mangoIndexes()
    func number(_ name: StaticString, _ least: Int) throws -> Int? {
      guard let text = query[name] else { return nil }
      guard let number = Int(text), number >= least else {
        throw CouchDBError(
          500, "invalid_list_index_params", "Index parameter ranges: limit > 1, skip > 0")
      }
      return number
    }
    let (limit, skip) = (try number("limit", 1) ?? .max, try number("skip", 0) ?? 0)
    let shown = indexes.dropFirst(skip).prefix(limit).map(\.json)
    let answer: OrderedJSON = [
      "total_rows": .scalar(.int(Int64(indexes.count))), "indexes": .array(Array(shown)),
    ]
    return .json(text: answer.jsonText + [UInt8(ascii: "\n")])
  }

  private func makeIndex() throws -> HTTPAnswer {
    let definition = try MangoDefinition(mangoBody(), inPartitionedDatabase: isPartitioned())
    try checkWritable()
    try IncomingID.check(definition.designID)
    let stored = try database.document(definition.designID)
    let body = try definition.added(to: stored.map { try $0.value().object ?? JSONObject() })
    if let body { try save(definition.designID, body, replacing: stored) }
    let answer: OrderedJSON = [
      "result": body != nil ? "created" : "exists", "id": .scalar(.string(definition.designID)),
      "name": .scalar(.string(definition.name)),
    ]
    return .json(text: answer.jsonText + [UInt8(ascii: "\n")])
  }

  /// The answer to `DELETE _index/{design}/{type}/{name}`.
  func deleteIndex(_ design: String, _ type: String, _ name: String) throws -> HTTPAnswer {
    try checkWritable()
    let id = Self.designID(design)
    let isThere = try database.mangoIndexes().contains { index in
      index.designID.map { Self.isEqual($0, id) } ?? false && Self.isEqual(index.name, name)
    }
    guard isThere, type == "json", let stored = try database.document(id) else { throw CouchDBError.missing }
    try delete([name], of: stored)
    return .ok()
  }

  /// The answer to `POST _index/_bulk_delete`: removes design documents with one index each.
  func deleteIndexes() throws -> HTTPAnswer {
    var options = MangoOptions(try mangoBody())
    let list = options.take("docids")
    _ = try options.count("w")
    try options.finish()
    guard let ids = list?.array?.map({ $0.string ?? $0.array?.first?.string ?? "" }),
      ids.allSatisfy({ !$0.isEmpty })
    else {
      throw CouchDBError(
        400, "invalid_bulk_docs",
        "Bulk Delete requires an array of non-null docids. Docids: \(list?.term ?? "")")
    }
    try checkWritable()
    var (done, failed): ([OrderedJSON], [OrderedJSON]) = ([], [])
    let indexes = try database.mangoIndexes()
    for id in ids.map({ Self.designID($0) }) {
      let own = indexes.filter { $0.designID.map { Self.isEqual($0, id) } ?? false }
      if !own.isEmpty, let stored = try database.document(id) {
        try delete(own.map(\.name), of: stored)
        done.append(["id": .scalar(.string(id)), "ok": true])
      } else {
        failed.append(["id": .scalar(.string(id)), "error": "not_found"])
      }
    }
    let answer: OrderedJSON = ["success": .array(done), "fail": .array(failed)]
    return .json(text: answer.jsonText + [UInt8(ascii: "\n")])
  }

  // MARK: Pieces

  private static func isEqual(_ left: String, _ right: String) -> Bool { left.utf8.elementsEqual(right.utf8) }

  private static func designID(_ name: String) -> String {
    name.utf8.starts(with: IncomingID.designPrefix.utf8) ? name : IncomingID.designPrefix + name
  }

  /// Removes indexes of a design document; the last one with the document.
  private func delete(_ names: [String], of stored: Document) throws {
    var body = try stored.value().object ?? JSONObject()
    var isLeft = true
    for name in names { isLeft = MangoDefinition.remove(name, from: &body) }
    if !isLeft { body = ["_deleted": true] }
    try save(stored.id, body, replacing: stored)
  }

  private func save(_ id: String, _ body: JSONObject, replacing stored: Document?) throws {
    let text = try JSONValue.object(body).jsonText()
    var document = try parse(text)
    document.id = id
    document.revision = try stored.map { try IncomingDocument.Revision($0.revisionID.description) }
    try checkSize(document, reason: "")
    var new = try NewAttachments(self)
    do { _ = try saved(document, text, isForeign: false, &new) } catch let error as CouchDBError
      where error.status == 409
    {
      throw CouchDBError(
        500, "error_saving_ddoc", "Encountered a conflict while saving the design document.")
    }
  }
}
