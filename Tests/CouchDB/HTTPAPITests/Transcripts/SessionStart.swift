// What exists before a session begins: databases, documents, settings. The README of the recordings tells what they hold.

import Bytes
import Fleece
import Foundation
import HTTP
import HTTPAPI
import TestSupport

enum SessionStart {
  /// The name of the recorded administrator.
  static let admin = "admin"

  /// Asks for something, before the session.
  typealias Ask = (_ method: String, _ target: String, _ headers: [(String, String)], _ body: [UInt8]) throws
    -> Void

  /// The settings of the recorded server, where they aren't the defaults.
  static func configuration(_ session: String) -> DatabaseServiceConfiguration {
    var configuration = DatabaseServiceConfiguration()
    // Pages of all origins could log in there. These are those that were recorded.
    configuration.crossOrigin = .origins(
      ["http://127.0.0.1:5980", "http://127.0.0.1:5981", "http://app.example"])
    // CouchDB doesn't compress what it makes up.
    configuration.compressesAnswers = false
    configuration.logins = RecordedLogins()
    // The recorder and the server are one.
    configuration.replicationTargets = NamedTargets(own: ["http://127.0.0.1:5984/", "http://127.0.0.1:5980/"])
    if session.hasPrefix("api-12") {
      configuration.maximumDocumentBytes = 2_000
      configuration.maximumAttachmentBytes = 1_000
      configuration.maximumRequestBytes = 5_000
    }
    return configuration
  }

  /// Who asks, as the listener finds out before a request comes to the API: the password and the cookie are checked there. Nil for a login
  /// that the listener refuses.
  static func context(of exchange: RecordedExchange) -> UserContext? {
    switch exchange.header("authorization") {
    case "Basic YWRtaW46c2VjcmV0": return .admin(admin)
    // Users of api-12, with the password "pw".
    case "Basic Y2Fyb2w6cHc=": return UserContext(name: "carol", roles: [])
    case "Basic ZGF2ZTpwdw==": return UserContext(name: "dave", roles: [])
    case nil: break
    default: return nil
    }
    return exchange.header("cookie")?.hasPrefix("AuthSession=YWRtaW4") == true ? .admin(admin) : .anonymous
  }

  // MARK: Databases

  private static let documents = [
    "airline_10", "airline_10123", "airline_10226", "airline_10642", "airline_10748", "airline_10765",
    "airline_109",
    "airline_112", "airline_1191", "airline_1203", "airline_1316", "airline_13391", "airport_1254",
    "airport_1255",
    "airport_1256", "airport_1257", "airport_1258", "airport_1259", "airport_1260", "airport_1261",
    "hotel_1097",
    "hotel_11378", "landmark_1", "landmark_10", "landmark_100", "upd_1", "conf_1", "conf_2", "conf_3",
    "conf_4", "del_1",
    "del_2", "del_3", "att_inline", "att_multi", "att_updated", "att_conf", "att_big", "sp ace/slash+plus",
    "ünïcode-✓",
    "_design/travel",
  ]

  /// Makes the databases of a session.
  static func prepare(_ session: String, _ replicator: TranscriptReplay.Replicator, _ ask: Ask) throws {
    let parts = session.split(separator: "-")
    let kind = "\(parts[0].filter(\.isLetter))-\(parts[1])"
    let json = [("Content-Type", "application/json")]
    func create(_ name: String, _ ids: [String] = []) throws {
      try ask("PUT", "/\(name)", [], [])
      if !ids.isEmpty { try RecordedRevisions.shared.write(ids, to: name, ask) }
    }
    func put(_ path: String, _ body: String) throws { try ask("PUT", path, json, Array(body.utf8)) }

    if case .own = replicator { try prepareOwn(kind, create) }
    switch kind {
    case "api-01": try create("travel")
    case "api-02": try create("p_doc")
    case "api-03": try create("p_bulk")
    case "api-04": try create("p_local")
    case "api-05": try create("p_att")
    case "api-06": try create("p_chg", documents.filter { $0 != "att_big" })
    case "api-07":
      try create("p_feed")
      for number in 0..<3 { try put("/p_feed/start_\(number)", "{\"i\":\(number)}") }
      try create("p_feed2")
    case "api-08":
      try create("p_all", documents.filter { $0 != "att_big" })
      try create("p_ids")
      for id in try listedIDs("api-08-all-docs", "/p_ids/_all_docs") {
        try put("/p_ids/\(escaped(id))", "{}")
      }
    case "api-09": try TravelSession.prepare(ask)
    case "api-10":
      try create("p_view")
      try create("p_coll")
      try CollationSession.prepare(ask)
    case "api-11": try create("p_find", documents.filter { $0 != "att_big" && $0 != "_design/travel" })
    case "api-12":
      try create("p_err")
      try put("/p_err/_design/v", ErrorSession.design)
      try put("/p_err/d", #"{"a":1}"#)
      try create("p_sec")
      try put("/p_sec/_security", #"{"admins":{"names":[]},"members":{"names":["carol"]}}"#)
      // The recorded driver had made this user before, and deleted it.
      try ask(
        "POST", "/_users/_bulk_docs", json,
        Array(
          #"{"new_edits":false,"docs":[{"_id":"org.couchdb.user:erin","_rev":"2-e","_deleted":true}]}"#.utf8))
    case "pouch-01": try create("src", documents)
    case "pouch-02": try create("p_push")
    case "pouch-03": try create("p_live", Array(documents[..<5]))
    case "pouch-04":
      try create("src", documents)
      try create("p_push")
    case "pouch-05": try create("p_rem", documents)
    case "pouch-06":
      try create("src", documents)
      try create("p_deny")
      try put("/p_deny/_design/v", try refusingDesign(session))
      try create("p_push")
    case "pouch-07": try create("p_cors", Array(documents[..<3]))
    case "replicator-01", "replicator-02":
      try create("src", documents + ["att_huge", "att_nine"])
      try put("/src/_local/mine", #"{"never":"replicated"}"#)
    case "replicator-04":
      try create("r_a", Array(documents[..<4]))
      try create("r_b")
    case "replicator-05":
      try create("src", documents)
      try create("r_f")
    case "replicator-06":
      try create("r_c", Array(documents[..<3]))
      try create("r_e")
    case "replicator-07": try create("r_h")
    case "replicator-08":
      try create("src", documents.filter { $0 != "att_big" })
      try create("r_x")
      try create("r_v")
      try put("/r_v/_design/v", ErrorSession.refusing)
      try create("r_y")
    default: break
    }
  }

  /// Makes the databases that only the server's own replications need: the sides that weren't recorded.
  private static func prepareOwn(_ kind: String, _ create: (String, [String]) throws -> Void) throws {
    switch kind {
    case "replicator-02": try create("r_pull", [])
    case "replicator-03": try create("src", documents + ["att_huge", "att_nine"])
    case "replicator-06": try create("r_d", [])
    case "replicator-07": try create("r_g", Array(documents[..<3]))
    default: break
    }
  }

  /// The IDs in a recorded answer of `_all_docs`.
  private static func listedIDs(_ session: String, _ path: String) throws -> [String] {
    let exchange = try Recording(session).exchanges.first { $0.path == path && $0.query.isEmpty }
    let answer = try (exchange?.answerBody ?? []).withUnsafeBytes { bytes throws(FleeceError) in
      try JSONValue(json: bytes)
    }
    return (answer["rows"].array ?? []).compactMap { $0["id"].string }
  }

  /// The design document that refuses some documents: it is in the answer to the last request of that database.
  private static func refusingDesign(_ session: String) throws -> String {
    for exchange in try Recording(session).exchanges where exchange.path == "/p_deny/_changes" {
      let answer = try exchange.answerBody.withUnsafeBytes { bytes throws(FleeceError) in
        try JSONValue(json: bytes)
      }
      for row in answer["results"].array ?? [] where row["id"].string == "_design/v" {
        var document = row["doc"]
        document.remove("_rev")
        return document.description
      }
    }
    throw RecordingError(description: "no design document in \(session)")
  }

  static func escaped(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? text
  }

  /// What was done before an exchange, and not recorded: databases were made anew, and documents were written.
  static func between(
    _ session: String, _ replicator: TranscriptReplay.Replicator, before exchange: RecordedExchange,
    _ ask: (_ method: String, _ target: String, _ body: [UInt8]) throws -> Void
  ) throws {
    func makeAnew(_ name: String) throws {
      try ask("DELETE", "/\(name)", [])
      try ask("PUT", "/\(name)", [])
    }
    if case .own = replicator {
      // The recorded driver made the target anew before each of these.
      if let target = targetsOfSteps[session], exchange.path == "/_replicate",
        exchange.note != "_replicate with names only",
        String(decoding: exchange.body, as: UTF8.self).contains("/\(target)\"")
      {
        try makeAnew(target)
      }
      return
    }
    switch (session, exchange.number) {
    case ("pouch7-04-filtered", 124), ("pouch9-04-filtered", 171): try makeAnew("p_push")
    case ("replicator-05-filtered", 199): try makeAnew("r_f")
    case ("replicator-08-errors-and-fallbacks", let number) where targetsMadeAnew.contains(number):
      try makeAnew("r_y")
    default: break
    }
  }

  /// The targets of sessions whose steps each begin with an empty one.
  private static let targetsOfSteps = [
    "replicator-05-filtered": "r_f", "replicator-08-errors-and-fallbacks": "r_y",
  ]

  /// The first exchanges with `r_y` of steps of replicator-08 that begin with an empty target.
  private static let targetsMadeAnew: Set<Int> = [227, 257, 269, 281, 295]

  /// Exchanges that were under way at once, in the order of their writes, as later answers show it.
  static func simultaneousWrites(_ session: String) -> [[Int]] {
    switch session {
    case "replicator-04-both-ends": [[29, 27, 28, 26]]
    case "replicator-06-continuous": [[48, 50, 49, 51], [62, 61, 64, 63]]
    default: []
    }
  }

  /// Sequences in requests that no answer before has shown, with their databases and the documents whose changes come next.
  static func unseenSequences(_ session: String) -> [(token: String, database: String, next: String)] {
    switch session {
    case "replicator-05-filtered":
      [
        (
          "47-g1AAAABPeJzLYWBgYMxgTmEQTM4vTc5ISXIwNDLXMwBCwxygFFMiQx4Lw38gyMpgTtTPBQqxJ5omm5qbG2HTkgUAHS8Uqw",
          "src", "sp ace/slash+plus"
        )
      ]
    default: []
    }
  }

  /// A write beside of which the recording shows the result only.
  static func unrecordedWrites(_ session: String) -> [(
    time: Double, method: String, target: String, body: String
  )] {
    switch session {
    case "pouch7-06-errors": [(3.96, "PUT", "/src/new_later", #"{"n":1}"#)]
    case "pouch9-06-errors": [(4.13, "PUT", "/src/new_later", #"{"n":1}"#)]
    default: []
    }
  }

  /// The revision that CouchDB gives to a new document with the body `{"n":1}`.
  static let commonRevision = "1-731bef401491606a3b246ed178e697c1"

  // MARK: Writes beside

  /// The writes beside the feeds of api-07, of which the recording gives a description: what, and how many seconds later.
  static func describedWrites(_ text: String) -> [(
    delay: Double, method: String, target: String, body: String
  )] {
    func put(_ delay: Double, _ id: String, _ body: String = #"{"n":1}"#) -> (Double, String, String, String)
    {
      (delay, "PUT", "/p_feed/\(id)", body)
    }
    let first = commonRevision
    return switch text {
    case "in 1.5 s: PUT lp_1": [put(1.5, "lp_1")]
    case "in 1 s: PUT lp_2": [put(1, "lp_2")]
    case "in 3.5 s: PUT lp_3": [put(3.5, "lp_3")]
    case "in 1 s: PUT other, in 2 s: PUT lp_4": [put(1, "other"), put(2, "lp_4")]
    case "in 1 s: PUT n:2 type x, in 2 s: type y":
      [put(1, "sx", #"{"n":2,"type":"x"}"#), put(2, "sy", #"{"n":3,"type":"y"}"#)]
    case "1 s: PUT c_1; 2 s: PUT c_2; 2.5 s: DELETE c_1":
      [put(1, "c_1"), put(2, "c_2", #"{"n":2}"#), (2.5, "DELETE", "/p_feed/c_1?rev=\(first)", "")]
    case "1 s: PUT i_1 twice (two revisions), 1 s later: PUT i_2":
      [
        put(1, "i_1"), put(1.05, "i_1?rev=\(first)", #"{"n":2}"#), put(2.06, "i_2"),
      ]
    case "1 s: POST _bulk_docs of five":
      [
        (
          1.4, "POST", "/p_feed/_bulk_docs",
          #"{"docs":[{"_id":"b_0"},{"_id":"b_1"},{"_id":"b_2"},{"_id":"b_3"},{"_id":"b_4"}]}"#
        )
      ]
    case "1 s: PUT no, 2 s: PUT yes": [put(1, "no"), put(2, "yes")]
    case "1 s: PUT e_1; 2 s: PUT e_2": [put(1, "e_1"), put(2, "e_2", #"{"n":2}"#)]
    case "1.5 s: DELETE /p_feed2": [(1.5, "DELETE", "/p_feed2", "")]
    case "1 s: PUT /p_new; 2 s: DELETE /p_new": [(1, "PUT", "/p_new", ""), (2, "DELETE", "/p_new", "")]
    default: []
    }
  }
}

/// The recorded administrator.
struct RecordedLogins: LoginSessions {
  let cookieSeconds = 600

  func check(
    _ user: String, _ password: String, from network: ByteString,
    _ completion: @escaping @Sendable (LoginResult) -> Void
  ) {
    let isRight = user == SessionStart.admin && password == "secret"
    completion(
      isRight
        ? .success(AcceptedLogin(.admin(user), cookie: "YWRtaW4tcGxheWVk"))
        : .failure(LoginRefusal(401, "Name or password is incorrect.")))
  }

  func context(of user: String) -> UserContext? { user == SessionStart.admin ? .admin(user) : nil }
  func renewal(of cookie: String) -> String? { nil }
  func end(_ cookie: String) {}
}
