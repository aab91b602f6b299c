import Bytes
import Fleece
import Touchstone
import Views

/// Writes the answer of `_local_docs`. Local documents are few: they are read one by one.
struct LocalDocumentList {
  private static let prefix = "_local/"

  private let database: Database
  private let options: ListOptions
  /// Whether those are listed that CouchDB's nodes keep for themselves.
  private let includesSystem: Bool

  init(_ call: DatabaseCall, _ options: ListOptions) {
    database = call.database
    self.options = options
    includesSystem = call.query["include_system"] == "true"
  }

  /// Writes the object with the rows, without a line feed. CouchDB doesn't count local documents.
  func write(to output: AnswerOutput) throws {
    output.append("{\"total_rows\":null,\"offset\":null")
    if options.includesSequence {
      let sequence = database.couchDBSequences.text(try database.lastSequence)
      output.append(raw: ",\"update_seq\":\"\(sequence)\"")
    }
    output.append(",\"rows\":[\r\n")
    var isFirst = true
    func begin() {
      if !isFirst { output.append(",\r\n") }
      isFirst = false
    }
    for key in try selected() {
      if let id = key.id, let document = try document(id) {
        begin()
        try write(id, document, to: output)
      } else if options.keys != nil {
        begin()
        output.append("{\"key\":")
        output.append(key.json)
        output.append(",\"error\":\"not_found\"}")
      }
      try output.step()
    }
    output.append("\r\n]}")
  }

  private func write(_ id: String, _ document: LocalDocument, to output: AnswerOutput) throws {
    let revision = "0-\(document.generation)"
    output.append("{\"id\":")
    output.append(jsonString: id)
    output.append(",\"key\":")
    output.append(jsonString: id)
    output.append(raw: ",\"value\":{\"rev\":\"\(revision)\"}")
    if options.includesDocuments {
      var body = document.body.object ?? JSONObject()
      body["_id"] = .string(id)
      body["_rev"] = .string(revision)
      output.append(",\"doc\":")
      try output.write { try $0.append(JSONValue.object(body)) }
    }
    output.append("}")
  }

  private func document(_ id: String) throws -> LocalDocument? {
    guard id.utf8.starts(with: Self.prefix.utf8) else { return nil }
    do {
      return try database.localDocument(String(id.utf8.dropFirst(Self.prefix.utf8.count)) ?? "")
    } catch let error as DocumentError where error.code == .invalidDocumentID { return nil }
  }

  /// The keys of the rows, in their order. A key of another kind than text has no ID.
  private func selected() throws -> [(id: String?, json: [UInt8])] {
    var all: [(id: String?, json: [UInt8])]
    if let keys = options.keys {
      all = try keys.map { (try JSONValue(body: $0).string, $0) }
    } else {
      all = try database.localDocumentIDs().map { Self.prefix + $0 }
        .filter { isSelected($0) && (includesSystem || !isOfSystem($0)) }.map { ($0, []) }
    }
    if options.isDescending { all.reverse() }
    return Array(all.dropFirst(options.skip).prefix(options.limit))
  }

  private func isOfSystem(_ id: String) -> Bool {
    ["_local/shard-sync-", "_local/purge-"].contains { id.utf8.starts(with: $0.utf8) }
  }

  private func isSelected(_ id: String) -> Bool {
    let bytes = Array(id.utf8)
    func isBefore(_ bound: ListOptions.IDBound) -> Bool {
      switch bound {
      case .none: false
      case .beforeAll: options.isDescending
      case .id(let bound):
        options.isDescending ? bound.lexicographicallyPrecedes(bytes) : bytes.lexicographicallyPrecedes(bound)
      }
    }
    func isBehind(_ bound: ListOptions.IDBound) -> Bool {
      switch bound {
      case .none: false
      case .beforeAll: !options.isDescending
      case .id(let bound):
        bound == bytes
          ? !options.includesEnd
          : bound.lexicographicallyPrecedes(bytes) != options.isDescending
      }
    }
    return !isBefore(options.start) && !isBehind(options.end)
  }
}
