import Fleece
import Foundation

/// The revisions that CouchDB's replicator has written in the first run of replicator-03: all of the recorded source database, with their
/// IDs, histories and attachments.
struct RecordedRevisions {
  /// A request that writes one revision.
  private struct Write {
    let method: String
    let path: String
    let headers: [(String, String)]
    let body: [UInt8]
  }

  static let shared = RecordedRevisions()
  private var writes: [String: [Write]] = [:]

  private init() {
    for exchange in (try? Recording("replicator-03-push").exchanges) ?? []
    where exchange.note == "push, create_target" {
      let type = [("Content-Type", exchange.header("content-type") ?? "")]
      if exchange.path == "/r_push/_bulk_docs" {
        let json = try? exchange.body.withUnsafeBytes { bytes throws(FleeceError) in
          try JSONValue(json: bytes)
        }
        for document in json?["docs"].array ?? [] {
          guard let id = document["_id"].string else { continue }
          let body: JSONValue = ["new_edits": false, "docs": [document]]
          let write = Write(
            method: "POST", path: "/_bulk_docs", headers: type, body: (try? body.jsonText()) ?? [])
          writes[id, default: []].append(write)
        }
      } else if exchange.method == "PUT", exchange.query == "new_edits=false" {
        let path = exchange.target.dropFirst("/r_push".count)
        let id = path.dropFirst().prefix { $0 != "?" }
        writes[String(id).removingPercentEncoding ?? "", default: []].append(
          Write(method: "PUT", path: String(path), headers: type, body: exchange.body))
      }
    }
  }

  /// Writes documents to a database, in this order.
  func write(_ ids: [String], to database: String, _ ask: SessionStart.Ask) throws {
    for id in ids {
      guard let writes = writes[id] else {
        throw RecordingError(description: "\(id) isn't in replicator-03-push")
      }
      for write in Self.olderRevisions(id) + writes {
        try ask(write.method, "/\(database)\(write.path)", write.headers, write.body)
      }
    }
  }

  /// Revisions that were replaced before the recording. Their bodies aren't in it, only that they were there.
  private static func olderRevisions(_ id: String) -> [Write] {
    guard id == "upd_1" else { return [] }
    let history = ["72dd68b2c930d71a52cbb15ec172213c", "775ec895410b6b004d92ac4d799636d8"]
    return (1...2).compactMap { generation in
      let ids = history.suffix(generation)
      let document: JSONValue = [
        "_id": .string(id), "_rev": .string("\(generation)-\(ids.first ?? "")"),
        "_revisions": ["start": .int(Int64(generation)), "ids": .array(ids.map { .string($0) })],
        "type": "note", "n": .int(Int64(generation)),
      ]
      let body: JSONValue = ["new_edits": false, "docs": [document]]
      return (try? body.jsonText()).map {
        Write(method: "POST", path: "/_bulk_docs", headers: [("Content-Type", "application/json")], body: $0)
      }
    }
  }
}
