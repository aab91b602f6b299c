import Fleece
import Touchstone

/// The replications of a server as a person wants to see them.
package struct ReplicationListing: Sendable, Hashable {
  /// The document of `_replicator` that describes it; nil if a request does.
  package var document: String?
  /// Its ID; nil if it has ended.
  package var id: String?
  /// The state, as CouchDB's scheduler names it.
  package var state: String
  package var source: String
  package var target: String
  /// Numbers of documents; nil if nobody knows.
  package var read: Int?
  package var written: Int?
  package var failures: Int?
  /// Why the last run has failed; nil if it hasn't.
  package var error: String?
  /// The failures in sequence.
  package var errorCount: Int
  /// When the state began: `2026-11-22T09:47:14Z`; nil if nobody knows.
  package var updated: String?

  /// Reads a row of `_scheduler/docs` or `_scheduler/jobs`; nil if it isn't one. What a job does follows from its history.
  package init?(_ row: JSONValue) {
    guard row.object != nil else { return nil }
    document = row["doc_id"].string
    id = row["id"].string
    let last = row["history"][0]
    state =
      row["state"].string
      ?? (last["type"].string == "started"
        ? "running" : last["type"].string == "crashed" ? "crashing" : "pending")
    source = row["source"].string ?? ""
    target = row["target"].string ?? ""
    let info = row["info"]
    func count(_ name: String) -> Int? { info[name].int.map { Int(clamping: $0) } }
    read = count("docs_read")
    written = count("docs_written")
    failures = count("doc_write_failures")
    error = info["error"].string ?? (state == "crashing" ? last["reason"].string : nil)
    errorCount = Int(clamping: row["error_count"].int ?? 0)
    updated = row["last_updated"].string ?? last["timestamp"].string
  }

  /// What the documents of a database `_replicator` say when no server is asked: those that haven't ended are `unfinished`.
  package static func documents(of database: Database) throws -> [ReplicationListing] {
    try database.read { snapshot in
      let sharedKeys = try snapshot.sharedKeys
      var listings: [ReplicationListing] = []
      try snapshot.forEachDocument(order: .ascending) { document in
        let id = document.id
        guard !IncomingID.isDesign(id), let root = document.body else { return true }
        let body = try root.jsonValue(sharedKeys: sharedKeys)
        if var listing = ReplicationListing(ReplicatorDocument.row(id, body)) {
          if !ReplicatorDocument.hasEnded(body) { (listing.state, listing.errorCount) = ("unfinished", 0) }
          listings.append(listing)
        }
        return true
      }
      return listings
    }
  }
}
