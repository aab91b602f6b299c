import Documents
import Fleece
import Network

/// The requests for documents.
enum DocumentQuery {
  /// The most ancestors of a document that are named.
  static let ancestors = 10

  private static let options = [("revs", "true"), ("latest", "true"), ("att_encoding_info", "true")]

  /// `_bulk_get` for several documents, without attachments.
  static func bulk(_ items: [WantedRevision], _ requester: DatabaseRequester) -> HTTPClientRequest? {
    var json = JSONWriter(capacity: items.count * 96)
    json.append(text: "{\"docs\":[")
    for (index, item) in items.enumerated() {
      if index > 0 { json.append(byte: UInt8(ascii: ",")) }
      json.append(text: "{\"id\":")
      json.append(string: item.change.id)
      json.append(text: ",\"rev\":")
      json.append(string: item.change.revision)
      json.append(text: "}")
    }
    json.append(text: "]}")
    var text: [UInt8] = []
    json.write(to: &text)
    return requester.request("POST", "_bulk_get", options + [("attachments", "false")], json: text)
  }

  /// A document with `open_revs`, and with the attachments that aren't here, unless none are wanted. Nil if its ID is too long for a
  /// URL.
  static func single(_ item: WantedRevision, _ requester: DatabaseRequester, withAttachments: Bool)
    -> HTTPClientRequest?
  {
    guard let revisions = try? JSONValue.array([.string(item.change.revision)]).canonicalJSON() else {
      return nil
    }
    let query = options + [("open_revs", revisions)]
    let path = HTTPDatabaseURL.path(item.change.id)
    guard withAttachments else { return requester.request("GET", path, query) }
    var request = newest(item.ancestors).flatMap {
      requester.request("GET", path, query + [("atts_since", $0)])
    }
    if request == nil { request = requester.request("GET", path, query) }
    request?.headers = [("Accept", "multipart/mixed, application/json;q=0.5")]
    return request
  }

  /// The newest of the revisions whose attachments needn't come again, as JSON; nil if there are none.
  static func newest(_ known: [String]) -> String? {
    let revisions = known.compactMap { RevisionID($0) }.sorted { $0 > $1 }
    guard !revisions.isEmpty else { return nil }
    return try? JSONValue.array(revisions.prefix(ancestors).map { .string($0.description) }).canonicalJSON()
  }
}
