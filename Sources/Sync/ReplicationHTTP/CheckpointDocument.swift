// A checkpoint of one direction, as a document under `_local/`. It is readable for the replicators of 1.x, which want
// `lastSequence`, and has the form of CouchDB's:
//
//   {"_id": "_local/NAME", "_rev": R, "replicator": "touchstone", "version": 1, "lastSequence": "S", "session_id": ID,
//    "source_last_seq": S, "history": [{"session_id": ID, "recorded_seq": S}, …]}

import Fleece
import Replication

/// A checkpoint of one direction.
struct CheckpointDocument: Sendable {
  var revision = ""
  /// JSON; nil if there is none.
  var sequence: String?
  /// Earlier places as JSON: sessions and sequences, the latest first.
  var places: [(session: String, sequence: String)] = []

  private static let maximumPlaces = 50

  /// Reads a stored document. What can't be read counts as missing.
  init?(_ value: JSONValue?) {
    guard let value, value.object != nil else { return nil }
    revision = value["_rev"].string ?? ""
    sequence = Self.sequence(value["source_last_seq"])
    if sequence == nil, let text = value["lastSequence"].string {
      sequence = UInt64(text).map { "\($0)" } ?? Self.sequence(.string(text))
    }
    for item in (value["history"].array ?? []).prefix(Self.maximumPlaces) {
      if let session = item["session_id"].string, let recorded = Self.sequence(item["recorded_seq"]) {
        places.append((session, recorded))
      }
    }
  }

  private static func sequence(_ value: JSONValue) -> String? {
    guard !value.isNull, let text = try? value.canonicalJSON(), text != "0", text != "\"\"" else {
      return nil
    }
    return text
  }

  /// Takes the pushed part of a checkpoint of this library.
  init(push value: JSONValue) {
    sequence = Self.sequence(value["local"])
    places = Self.places(value["pushes"])
  }

  /// Takes the pulled part.
  init(pull value: JSONValue) {
    sequence = Self.sequence(value["remote"])
    places = Self.places(value["pulls"])
  }

  private static func places(_ value: JSONValue) -> [(session: String, sequence: String)] {
    (value.array ?? []).compactMap { item in
      guard let session = item[0].string, let text = sequence(item[1]) else { return nil }
      return (session, text)
    }
  }

  /// The document's text.
  func text(_ name: String) -> [UInt8] {
    guard let sequence else { return [] }
    var text = "{\"_id\":\"_local/\(name)\""
    if !revision.isEmpty { text += ",\"_rev\":\(Self.quoted(revision))" }
    let plain = sequence.hasPrefix("\"") ? sequence : Self.quoted(sequence)
    text += ",\"replicator\":\"touchstone\",\"version\":1,\"lastSequence\":\(plain)"
    if let first = places.first { text += ",\"session_id\":\"\(first.session)\"" }
    text += ",\"source_last_seq\":\(sequence),\"history\":["
    text += places.map { "{\"session_id\":\"\($0.session)\",\"recorded_seq\":\($0.sequence)}" }.joined(
      separator: ",")
    return Array((text + "]}").utf8)
  }

  private static func quoted(_ text: String) -> String {
    (try? JSONValue.string(text).canonicalJSON()) ?? "\"\""
  }

  /// Both directions as a checkpoint of this library; nil if there is neither.
  static func stored(push: CheckpointDocument?, pull: CheckpointDocument?) -> StoredCheckpoint? {
    guard push != nil || pull != nil else { return nil }
    var members: [String] = []
    if let sequence = push?.sequence { members.append("\"local\":\(sequence)") }
    if let sequence = pull?.sequence { members.append("\"remote\":\(sequence)") }
    for (name, document) in [("pushes", push), ("pulls", pull)] {
      let places = (document?.places ?? []).map { "[\(quoted($0.session)),\($0.sequence)]" }
      if !places.isEmpty { members.append("\"\(name)\":[\(places.joined(separator: ","))]") }
    }
    return StoredCheckpoint(
      json: Array("{\(members.joined(separator: ","))}".utf8),
      revision: "\(push?.revision ?? "") \(pull?.revision ?? "")")
  }
}
