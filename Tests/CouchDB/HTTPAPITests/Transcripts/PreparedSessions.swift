// Databases whose documents aren't in any recorded request. They are made from what the README tells of them and from what
// answers show.

import Datasets
import Fleece
import Foundation

/// `travel` of api-09: the first documents of each type of the travel sample, 2,000 in all. The first ten airlines have two leaves, and
/// ten others are deleted.
enum TravelSession {
  private static let counts = ["airline": 187, "airport": 613, "hotel": 300, "landmark": 400, "route": 500]

  static func prepare(_ ask: SessionStart.Ask) throws {
    let exchanges = try Recording("api-09-views").exchanges
    let json = [("Content-Type", "application/json")]
    try ask("PUT", "/travel", [], [])
    let design = exchanges.first { $0.path == "/travel/_design/travel" && $0.method == "GET" }
    var documents: [JSONValue] = []
    let revisions = recordedRevisions(exchanges)
    var body = try (design?.answerBody ?? []).withUnsafeBytes { bytes throws(FleeceError) in
      try JSONValue(json: bytes)
    }
    body["_revisions"] = history(body["_rev"].string ?? "")
    documents.append(body)

    let source = try JSONLinesSource(path: "\(recordingFolder ?? "")/../travel-sample/travel-sample.jsonl.gz")
    var left = counts
    var airlines = 0
    while let record = try source.next() {
      guard let id = record.idString else { continue }
      let type = String(id.prefix { $0 != "_" })
      guard let count = left[type], count > 0 else { continue }
      left[type] = count - 1
      var document = try [UInt8](record.json).withUnsafeBytes { bytes throws(FleeceError) in
        try JSONValue(json: bytes)
      }
      let first = revisions[id] ?? "1-" + String(repeating: "0", count: 32)
      document["_id"] = .string(id)
      document["_rev"] = .string(first)
      document["_revisions"] = history(first)
      documents.append(document)
      guard type == "airline" else { continue }
      if airlines < 10 {
        for letter in ["b", "c"] {
          var branch = document
          let revision = "2-" + String(repeating: letter, count: 32)
          branch["callsign"] = .string("\(letter)-\(airlines)")
          branch["_rev"] = .string(revision)
          branch["_revisions"] = history(revision, first)
          documents.append(branch)
        }
      } else if (20..<30).contains(airlines) {
        let revision = "2-" + String(repeating: "d", count: 32)
        documents.append([
          "_id": .string(id), "_rev": .string(revision), "_deleted": true,
          "_revisions": history(revision, first),
        ])
      }
      airlines += 1
    }
    let bulk: JSONValue = ["new_edits": false, "docs": .array(documents)]
    try ask("POST", "/travel/_bulk_docs", json, try bulk.jsonText())
    // The views were up to date.
    try ask("GET", "/travel/_design/travel/_view/by_type?limit=0&reduce=false", [], [])
  }

  private static func history(_ revisions: String...) -> JSONValue {
    let start = revisions.first.flatMap { Int64($0.prefix { $0 != "-" }) } ?? 0
    return [
      "start": .int(start),
      "ids": .array(revisions.map { .string(String($0.drop { $0 != "-" }.dropFirst())) }),
    ]
  }

  /// The first revisions that answers show.
  private static func recordedRevisions(_ exchanges: [RecordedExchange]) -> [String: String] {
    var found: [String: String] = [:]
    for exchange in exchanges {
      let text = String(decoding: exchange.answerBody, as: UTF8.self)
      for match in text.matches(of: /"_id":"([^"]+)","_rev":"(1-[0-9a-f]{32})"/) {
        found[String(match.1)] = String(match.2)
      }
    }
    return found
  }
}

/// `p_coll` of api-10: a document for each key of a view. The keys stand in the documents as texts, which keep the order of members.
enum CollationSession {
  static func prepare(_ ask: SessionStart.Ask) throws {
    let json = [("Content-Type", "application/json")]
    let design: JSONValue = [
      "language": "javascript",
      "views": ["k": ["map": "function (doc) { emit(JSON.parse(doc.json), null); }"]],
    ]
    try ask("PUT", "/p_coll/_design/d", json, try design.jsonText())
    let exchanges = try Recording("api-10-views-changing").exchanges
    let all = exchanges.first { $0.path.hasPrefix("/p_coll/") }?.answerBody ?? []
    for line in String(decoding: all, as: UTF8.self).split(whereSeparator: \.isNewline)
    where line.hasPrefix("{\"id\"") {
      let id = String(line.dropFirst(7).prefix { $0 != "\"" })
      guard let start = line.range(of: "\"key\":")?.upperBound,
        let end = line.range(of: ",\"value\":null}")?.lowerBound
      else { continue }
      let document: JSONValue = ["json": .string(String(line[start..<end]))]
      try ask("PUT", "/p_coll/\(SessionStart.escaped(id))", json, try document.jsonText())
    }
  }
}

/// `p_err` of api-12: its functions do what the notes of the exchanges say.
enum ErrorSession {
  static let design = """
    {"language":"javascript","views":{"all":{"map":"function (doc) { emit(doc._id, null); }"}},
    "filters":{"boom":"function (doc, req) { return doc.a.b.c; }","syntax":"function ("},
    "validate_doc_update":"function (n, o, u) { if (o && o.keep && n._deleted) throw({forbidden: 'kept'}); \
    if (n.type === 'secret') throw({forbidden: 'not allowed'}); \
    if (n.type === 'mine' && !u.name) throw({unauthorized: 'log in'}); }"}
    """

  /// `_design/v` of replicator-08.
  static let refusing = """
    {"language":"javascript","validate_doc_update":"function (n) { \
    if (n.type === 'airport') throw({forbidden: 'no airports'}); \
    if (n.type === 'att') throw({unauthorized: 'who?'}); }"}
    """
}
