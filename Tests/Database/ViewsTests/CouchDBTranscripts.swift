import Datasets
import Fleece
import Foundation
import Storage
import TestSupport
import Touchstone

@testable import Views

/// A recorded exchange with CouchDB.
struct RecordedExchange {
  let number: Int
  let method: String
  let path: [String]
  let query: [(name: String, value: String)]
  let contentType: String?
  let body: String?
  let status: Int
  let answer: String

  init?(_ line: Data) throws {
    guard let object = try JSONSerialization.jsonObject(with: line) as? [String: Any],
      object["type"] as? String == "http", let number = object["n"] as? Int,
      let request = object["req"] as? [String: Any], let answer = object["res"] as? [String: Any],
      let method = request["method"] as? String, let path = request["path"] as? String,
      let status = answer["status"] as? Int
    else { return nil }
    self.number = number
    self.method = method
    self.status = status
    self.answer = answer["body"] as? String ?? ""
    self.path = path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    query = (request["query"] as? String ?? "").split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
        $0.replacing("+", with: " ").removingPercentEncoding ?? String($0)
      }
      return (parts[0], parts.count == 2 ? parts[1] : "")
    }
    body = request["body"] as? String
    let headers = request["headers"] as? [[String]] ?? []
    contentType = headers.first { $0.count == 2 && $0[0].lowercased() == "content-type" }?[1]
  }

  /// The design document and the view that is queried.
  var view: (design: String, name: String, isList: Bool)? {
    guard path.count >= 5, path[1] == "_design", path[3] == "_view", ["GET", "HEAD", "POST"].contains(method)
    else { return nil }
    guard path.count == 5 || (path.count == 6 && path[5] == "queries") else { return nil }
    return (path[2], path[4], path.count == 6)
  }

  var text: String { "\(method) /\(path.joined(separator: "/")) \(query) \(body ?? "")" }

  static func read(_ name: String, below data: String) throws -> [RecordedExchange] {
    let text = try Data(contentsOf: URL(filePath: "\(data)/http-transcripts/\(name)"))
    return try text.split(separator: UInt8(ascii: "\n")).compactMap { try RecordedExchange(Data($0)) }
  }
}

/// Compares answers.
struct AnswerComparison {
  /// Numbers that differ by rounding only.
  private(set) var rounded = 0

  /// Members whose values aren't ours to know.
  private static let ignored: Set<String> = ["ref", "update_seq"]

  /// The first difference, or nil.
  mutating func difference(_ expected: JSONValue, _ found: JSONValue, at path: String = "") -> String? {
    switch (expected, found) {
    case (.object(let left), .object(let right)):
      let names = Set(left.keys).subtracting(["ref"])
      guard names == Set(right.keys).subtracting(["ref"]) else {
        return "\(path): members \(left.keys.sorted()) and \(right.keys.sorted())"
      }
      for name in names.subtracting(AnswerComparison.ignored).sorted() {
        if let found = difference(left[name] ?? .null, right[name] ?? .null, at: path + "." + name) {
          return found
        }
      }
      return nil
    case (.array(let left), .array(let right)):
      guard left.count == right.count else { return "\(path): \(left.count) and \(right.count) items" }
      for (index, (left, right)) in zip(left, right).enumerated() {
        if let found = difference(left, right, at: "\(path)[\(index)]") { return found }
      }
      return nil
    case (.int, _), (.double, _), (.uint, _):
      guard let left = expected.double, let right = found.double else { break }
      if left == right { return nil }
      guard abs(left - right) <= 1e-12 * max(abs(left), abs(right)) else { break }
      rounded += 1
      return nil
    default:
      if expected == found { return nil }
    }
    return "\(path): \(expected) and \(found)"
  }

  /// The same for the texts of answers. What a compiler says of a script is its own.
  mutating func difference(_ expected: String, _ found: String) -> String? {
    if expected == found { return nil }
    guard let left = try? JSONValue(json: expected), let right = try? JSONValue(json: found) else {
      return "\(expected.prefix(300)) and \(found.prefix(300))"
    }
    if left["error"] == "compilation_error", right["error"] == "compilation_error" {
      func beginning(_ value: JSONValue) -> String {
        let reason = value["reason"].string ?? ""
        return reason.range(of: "failed: ").map { String(reason[..<$0.upperBound]) } ?? reason
      }
      return beginning(left) == beginning(right) ? nil : "\(expected) and \(found)"
    }
    return difference(left, right)
  }
}

/// Replays recorded exchanges on a database.
final class CouchDBReplay {
  let database: Database
  var comparison = AnswerComparison()
  private(set) var compared = 0
  /// Exchanges whose answers were equal byte by byte.
  private(set) var equal = 0
  private(set) var others: [Int] = []
  private(set) var differences: [String] = []

  init(_ database: Database) { self.database = database }

  func run(_ exchange: RecordedExchange) throws {
    if let view = exchange.view, !(exchange.method == "POST" && exchange.contentType == "text/plain") {
      try compare(exchange, query(exchange, view))
      // An update in the background, which the next exchange shows.
      if exchange.query.contains(where: { $0.value == "update_after" || $0.value == "lazy" }) {
        let view = try database.view(view.design + "/" + view.name)
        try eventually { try !view.isStale }
      }
    } else if exchange.method == "PUT", exchange.path.count == 3, exchange.path[1] == "_design" {
      try design(exchange)
    } else if exchange.method == "PUT" || exchange.method == "DELETE", exchange.path.count == 2 {
      try change(exchange)
    } else if exchange.path.last == "_bulk_docs" {
      try bulk(exchange)
    } else if !(exchange.method == "GET" && exchange.path.count == 2) {
      others.append(exchange.number)
    }
  }

  private func compare(_ exchange: RecordedExchange, _ answer: (status: Int, body: String)) throws {
    compared += 1
    if answer.status == exchange.status, answer.body == exchange.answer {
      equal += 1
      return
    }
    var difference: String?
    if answer.status != exchange.status {
      difference = "status \(exchange.status) and \(answer.status): \(answer.body.prefix(300))"
    } else if exchange.method != "HEAD" {
      difference = comparison.difference(exchange.answer, answer.body)
    }
    if let difference { differences.append("\(exchange.number) \(exchange.text): \(difference)") }
  }

  private func query(
    _ exchange: RecordedExchange, _ view: (design: String, name: String, isList: Bool)
  ) throws -> (status: Int, body: String) {
    let output = Lock<[UInt8]>([])
    func write(_ piece: UnsafeRawBufferPointer) { output.withLock { $0 += piece } }
    let body = Array((exchange.body ?? "").utf8)
    do {
      let found = try database.couchDBView(view.design, view.name)
      if view.isList {
        try found.answer(queries: CouchDBViewOptions.queries(body: body, query: exchange.query), write)
      } else if exchange.method == "POST" {
        try found.answer(CouchDBViewOptions(body: body, query: exchange.query), write)
      } else {
        try found.answer(CouchDBViewOptions(query: exchange.query), write)
      }
      return (200, String(decoding: output.withLock { $0 }, as: UTF8.self))
    } catch let error as CouchDBError {
      return (error.status, String(decoding: error.json, as: UTF8.self))
    }
  }

  // MARK: Changes

  private func object(_ text: String?) throws -> [String: Any] {
    try JSONSerialization.jsonObject(with: Data((text ?? "{}").utf8)) as? [String: Any] ?? [:]
  }

  private func apply(_ id: String, _ revision: String, after old: String?, _ body: [String: Any]) throws {
    let json = try JSONSerialization.data(withJSONObject: body.filter { !["_id", "_rev"].contains($0.key) })
    try database.apply(
      PulledRevision(id: id, history: [revision] + (old.map { [$0] } ?? []), body: .json([UInt8](json))))
  }

  /// Stores a design document with the recorded revision, or compares the refusal.
  private func design(_ exchange: RecordedExchange) throws {
    do {
      try database.checkDesign("", JSONValue(json: exchange.body ?? "").object ?? JSONObject())
    } catch let error as CouchDBError {
      return try compare(exchange, (error.status, String(decoding: error.json, as: UTF8.self)))
    }
    try compare(exchange, (201, exchange.answer))
    guard let revision = try object(exchange.answer)["rev"] as? String else { return }
    try apply(exchange.path.dropFirst().joined(separator: "/"), revision, after: nil, object(exchange.body))
  }

  private func change(_ exchange: RecordedExchange) throws {
    let body = try object(exchange.body)
    guard let revision = try object(exchange.answer)["rev"] as? String else { return }
    let old = body["_rev"] as? String ?? exchange.query.first { $0.name == "rev" }?.value
    if exchange.method == "DELETE" {
      try database.apply(
        PulledRevision(id: exchange.path[1], history: [revision] + (old.map { [$0] } ?? []), isDeleted: true))
    } else {
      try apply(exchange.path[1], revision, after: old, body)
    }
  }

  private func bulk(_ exchange: RecordedExchange) throws {
    let answers = try JSONSerialization.jsonObject(with: Data(exchange.answer.utf8)) as? [[String: Any]] ?? []
    for (index, document) in (try object(exchange.body)["docs"] as? [[String: Any]] ?? []).enumerated() {
      let revision = index < answers.count ? answers[index]["rev"] : document["_rev"]
      guard let id = document["_id"] as? String, let revision = revision as? String else { continue }
      try apply(id, revision, after: nil, document)
    }
  }
}
