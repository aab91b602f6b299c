import Touchstone

/// The report of a `.cblite2` import, as text for the terminal and as JSON.
extension CBLite2ImportReport {
  /// The counts of the report, with their names in JSON and their words on the terminal.
  private var counts: [(name: String, words: String, count: Int)] {
    [
      ("read", "rows read", read), ("documents", "documents", documents),
      ("tombstones", "tombstones", tombstones),
      ("merged", "merged with stored documents", merged), ("unchanged", "already stored", unchanged),
      ("revisions", "revisions", revisions), ("bodies", "bodies", bodies),
      ("conflicts", "in conflict", conflicts),
      ("otherWinners", "with another winner", otherWinners), ("expirations", "expirations", expirations),
      ("expired", "expired, not imported", expired), ("localDocuments", "local documents", localDocuments),
      ("blobs", "blobs", blobs), ("missingBlobs", "blobs missing", missingBlobs),
      ("skipped", "skipped", skipped),
    ]
  }

  /// One line per count above 0, and then what wasn't imported.
  var lines: [String] {
    var table = TextTable([("", .right), ("", .left)])
    for (_, words, count) in counts where count > 0 || ["documents", "rows read"].contains(words) {
      table.add(TextTable.grouped(count), words)
    }
    var lines = table.lines
    for other in otherCollections {
      lines.append(
        "not imported: collection \(other.name), \(SuccessLine.documents(other.documents))"
          + " (--collection \(other.name))")
    }
    if !indexes.isEmpty { lines.append("not imported: indexes \(indexes.joined(separator: ", "))") }
    if checkpoints > 0 {
      lines.append("not imported: \(TextTable.counted(checkpoints, "replication checkpoint"))")
    }
    if remoteNotes > 0 {
      lines.append(
        "not imported: the notes about remote databases of \(SuccessLine.documents(remoteNotes))")
    }
    for detail in details.prefix(20) { lines.append("skipped: \(detail.id): \(detail.reason)") }
    if details.count > 20 { lines.append("skipped: … and more: --json lists \(details.count)") }
    return lines
  }

  /// The whole report as JSON.
  var json: String {
    var object: JSONObjectText = ["version": version, "collection": collection]
    for (name, _, count) in counts { object.add(name, count) }
    object.add("blobBytes", blobBytes)
    let left: JSONObjectText = [
      "collections": otherCollections.map { ["name": $0.name, "documents": $0.documents] as JSONObjectText },
      "indexes": indexes, "checkpoints": checkpoints, "remoteNotes": remoteNotes,
    ]
    object.add("notImported", left)
    object.add("details", details.map { ["id": $0.id, "reason": $0.reason] as JSONObjectText })
    return object.jsonText
  }
}

/// The report of a `.cblite2` export, as text for the terminal and as JSON.
extension CBLite2ExportReport {
  private var counts: [(name: String, words: String, count: Int)] {
    [
      ("documents", "documents", documents), ("tombstones", "tombstones", tombstones),
      ("revisions", "revisions", revisions), ("bodies", "bodies", bodies),
      ("conflicts", "in conflict", conflicts),
      ("expirations", "expirations", expirations), ("localDocuments", "local documents", localDocuments),
      ("blobs", "blobs", blobs), ("missingBlobs", "blobs missing", missingBlobs),
      ("rewrittenIDs", "revision IDs rewritten", rewrittenIDs),
      ("cutOffRevisions", "revisions cut off", cutOffRevisions), ("skipped", "skipped", skipped),
    ]
  }

  /// One line per count above 0, and then what was changed or not exported.
  var lines: [String] {
    var table = TextTable([("", .right), ("", .left)])
    for (_, words, count) in counts where count > 0 || words == "documents" {
      table.add(TextTable.grouped(count), words)
    }
    var lines = table.lines
    if !indexes.isEmpty { lines.append("not exported: indexes \(indexes.joined(separator: ", "))") }
    for change in rewritten.prefix(20) {
      lines.append("rewritten: \(change.id): \(change.revision) is \(change.written)")
    }
    if rewritten.count > 20 { lines.append("rewritten: … and more: --json lists \(rewritten.count)") }
    for detail in details.prefix(20) { lines.append("skipped: \(detail.id): \(detail.reason)") }
    return lines
  }

  /// The whole report as JSON.
  var json: String {
    var object: JSONObjectText = [:]
    for (name, _, count) in counts { object.add(name, count) }
    object.add("blobBytes", blobBytes)
    object.add("indexes", indexes)
    object.add(
      "rewritten",
      rewritten.map { ["id": $0.id, "revision": $0.revision, "written": $0.written] as JSONObjectText })
    object.add("details", details.map { ["id": $0.id, "reason": $0.reason] as JSONObjectText })
    return object.jsonText
  }
}
