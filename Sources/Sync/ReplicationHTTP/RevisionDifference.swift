import Bytes
import Fleece
import Replication

/// What the other side lacks, as `_revs_diff` says it: `{"doc": {"missing": [rev, …], "possible_ancestors": [rev, …]}, …}`.
struct RevisionDifference: Sendable {
  private let documents: JSONObject

  /// Reads an answer. Throws the transient error HTTP 502 if it isn't one, such as that of a proxy: nothing is known then
  /// about what the other side lacks.
  init(_ body: [UInt8]) throws {
    guard let object = (try? body.withUnsafeBytes({ try JSONValue(json: $0) }))?.object,
      object.allSatisfy({ $0.value["missing"].array != nil })
    else { throw ReplicationError(.http, 502, "the answer to _revs_diff can't be read") }
    documents = object
  }

  /// The body of the request: the revisions by document.
  static func body(_ changes: ArraySlice<ProposedChange>) -> [UInt8] {
    var places: [ByteString: Int] = [:]
    var documents: [(id: String, revisions: [String])] = []
    for change in changes {
      let id = ByteString(change.id)
      if let place = places[id] {
        documents[place].revisions.append(change.revision)
      } else {
        places[id] = documents.count
        documents.append((change.id, [change.revision]))
      }
    }
    var json = JSONWriter(capacity: changes.count * 80)
    json.append(byte: UInt8(ascii: "{"))
    for (index, document) in documents.enumerated() {
      if index > 0 { json.append(byte: UInt8(ascii: ",")) }
      json.append(string: document.id)
      json.append(byte: UInt8(ascii: ":"))
      json.append(strings: document.revisions)
    }
    json.append(byte: UInt8(ascii: "}"))
    var text: [UInt8] = []
    json.write(to: &text)
    return text
  }

  func status(_ change: ProposedChange) -> ProposalStatus {
    guard let missing = documents[change.id]?["missing"]?.array else { return .known }
    return missing.contains { $0.string?.hasSameBytes(as: change.revision) ?? false } ? .send : .known
  }

  func possibleAncestors(_ change: ProposedChange) -> [String] {
    (documents[change.id]?["possible_ancestors"]?.array ?? []).compactMap(\.string)
  }
}

extension JSONWriter {
  /// Appends an array of strings.
  mutating func append(strings: [String]) {
    append(byte: UInt8(ascii: "["))
    for (index, string) in strings.enumerated() {
      if index > 0 { append(byte: UInt8(ascii: ",")) }
      append(string: string)
    }
    append(byte: UInt8(ascii: "]"))
  }

  /// Appends JSON text as it is.
  mutating func append(text: StaticString) {
    text.withUTF8Buffer { append(json: UnsafeRawBufferPointer($0)) }
  }

  /// Appends JSON text as it is.
  mutating func append(text: [UInt8]) { text.withUnsafeBytes { append(json: $0) } }
}
