import Bytes
import Foundation
import TestSupport
import Testing

@testable import HTTPAPI

/// docs/http-reference.md, which says of each endpoint of CouchDB's reference whether it is here, against the table of routes.
@Suite("CouchDB's reference") struct ReferenceTests {
  private struct Row {
    let methods: [String]
    let path: String
    /// `whole`, `part` or `no`; what it is, for endpoints that CouchDB doesn't have.
    let word: String
    let reason: String
  }

  /// The rows of tables whose heads have that many columns.
  private func rows(columns: Int) throws -> [Row] {
    let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
    let page = try String(contentsOf: root.appending(path: "docs/http-reference.md"), encoding: .utf8)
    return page.split(separator: "\n").compactMap { line in
      guard line.hasPrefix("|"), line.contains("`/") else { return nil }
      let cells = line.split(separator: "|", omittingEmptySubsequences: false).dropFirst().dropLast()
        .map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == columns, cells[1].hasPrefix("`/") else { return nil }
      return Row(
        methods: cells[0].components(separatedBy: ", "), path: String(cells[1].dropFirst().dropLast()),
        word: cells[2], reason: columns > 3 ? cells[3] : "")
    }
  }

  /// The pattern of the route that answers a path, with its methods; nil if none does.
  private func route(_ path: String) -> (pattern: String, methods: [String], isImplemented: Bool)? {
    var segments = path.split(separator: "/").map { $0.hasPrefix("{") ? "x" : String($0) }
    if segments.first.map({ $0 != "x" || path == "/" }) ?? true {
      let parts = segments.map { ByteString($0) }
      let found = Routes.server.routes.first { $0.values(parts) != nil }
      return found.map { ("/" + $0.pattern, $0.methods, $0.isImplemented) }
    }
    segments.removeFirst()
    if segments.isEmpty { return ("/{db}", ["PUT"] + Routes.wholeDatabase.methods, true) }
    if segments.first == "_local", segments.count == 2 {
      return ("/{db}/_local/{doc}", Routes.localDocument.methods, true)
    }
    let parts = segments.map { ByteString($0) }
    if let found = Routes.database.routes.first(where: { $0.values(parts) != nil }) {
      return ("/{db}/" + found.pattern, found.methods, found.isImplemented)
    }
    // The ID of a design document has two segments.
    if segments.first == "_design" { segments.removeFirst() }
    guard segments.allSatisfy({ $0 == "x" }) else { return nil }
    let document = segments.count == 1
    return document
      ? ("/{db}/{doc}", Routes.document.methods, true)
      : ("/{db}/{doc}/{attachment}/…", Routes.attachment.methods, true)
  }

  @Test("each row says what the table of routes says") func rows() throws {
    let rows = try rows(columns: 4)
    expect(rows.count > 80, "the tables can't be read")
    for row in rows {
      let route = route(row.path)
      switch row.word {
      case "whole", "part":
        expect(route?.isImplemented == true, "\(row.path) isn't there")
        for method in row.methods { expect(route?.methods.contains(method) == true, "\(method) \(row.path)") }
        if row.word == "part" { expect(!row.reason.isEmpty, "\(row.path): what is different?") }
      case "no":
        expect(!row.reason.isEmpty, "\(row.path): why not?")
        // Its status is that of the reason.
        if row.reason.hasPrefix("501") { expect(route?.isImplemented == false, "\(row.path) is there") }
      default: expect(Bool(false), "\(row.path): \(row.word)")
      }
    }
    expect(Set(rows.map(\.path)).count, equals: rows.count)
  }

  @Test("each route is in the page") func routes() throws {
    let paths = try rows(columns: 4).map(\.path) + rows(columns: 3).map(\.path)
    let found = Set(paths.compactMap { route($0)?.pattern })
    // What answers only to be of help: a method that isn't there, or a path that isn't one.
    let others: Set<String> = [
      "/_scheduler/…", "/{db}/_design/{design}/_view", "/{db}/_partition/…",
      "/{db}/_index/…", "/{db}/_index/_design/{design}/{type}/{name}",
    ]
    for (path, _, _) in Routes.all where !others.contains(path) {
      expect(found.contains(path), "docs/http-reference.md has no row for \(path)")
    }
  }

  @Test("what the page calls missing answers with the status that it names") func missing() throws {
    let client = try APIClient.withDatabase()
    for row in try rows(columns: 4) where row.word == "no" {
      let target = row.path.replacing("{db}", with: "db").replacing("{node}", with: "_local")
        .replacing(/\{[a-z]+\}/, with: "x")
      for method in row.methods {
        let answer = try client.ask(method, target, headers: [("Content-Type", "application/json")])
        expect("\(answer.status)", equals: String(row.reason.prefix(3)), "\(method) \(target)")
      }
    }
  }
}
