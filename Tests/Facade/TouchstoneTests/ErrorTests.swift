import Foundation
import TestSupport
import Testing

@testable import Touchstone

/// The error that `body` throws.
private func failure(_ body: () throws -> Void) throws -> any TouchstoneError {
  var caught: (any TouchstoneError)?
  do { try body() } catch let error as any TouchstoneError { caught = error }
  return try #require(caught)
}

@Suite("Errors") struct ErrorTests {
  @Test("each failure says its kind, whether a retry can help, and what it is about")
  func kinds() throws {
    try withDatabase(.sqlite) { notes in
      try notes.save("a", ["n": 1])
      let conflict = try failure { try notes.save("a", ["n": 2], onConflict: .fail) }
      expect(conflict.kind == .conflict && conflict.subject == .document("a"))
      expect(!conflict.canRetry && conflict.kind.httpStatus == 409)
      let missing = try failure { try notes.purge("b") }
      expect(missing.kind == .notFound && missing.subject == .document("b"))
      let wrongQuery = try failure { _ = try notes.query("SELECT\nFROM _ WHERE") }
      guard case .place(let place)? = wrongQuery.subject else {
        Issue.record("no place: \(wrongQuery)")
        return
      }
      expect(wrongQuery.kind == .badRequest && place.line == 2)
      let cancellation = QueryCancellation()
      cancellation.cancel()
      let cancelled = try failure {
        _ = try notes.query("SELECT * FROM _").run(cancellation: cancellation)
      }
      expect(cancelled.kind == .cancelled && !cancelled.canRetry)
      let inUse = try failure { try Database.delete(notes.path) }
      expect(inUse.kind == .busy && inUse.canRetry && inUse.subject == .path(notes.path))
      let json = try failure { try notes.save("c", DocumentBody(json: "{\"a\":")) }
      expect(json.kind, equals: .badRequest)
    }
    let directory = TemporaryDirectory()
    let none = try failure {
      _ = try Database.open("none", in: directory.path, options: .init(creation: .openExisting))
    }
    expect(none.kind == .notFound && none.subject == .path(directory.path + "/none.touchstone"))
    let options = DatabaseOptions(
      engine: .lmdbEncrypted, key: try .raw([UInt8](repeating: 1, count: 32)))
    try Database.open("locked", in: directory.path, options: options).close()
    for key in [nil, try UserKey.raw([UInt8](repeating: 2, count: 32))] {
      let locked = try failure {
        _ = try Database.open("locked", in: directory.path, options: DatabaseOptions(key: key))
      }
      expect(locked.kind == .unauthorized && locked.kind.httpStatus == 401)
    }
  }

  @Test("a folder that can't close a database says so as its database does", arguments: someEngines)
  func foldersClose(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    let notes = try folder.open("notes")
    try notes.read { _ in
      let error = try failure { try folder.close() }
      expect(error is DatabaseFolder.CloseError && error.kind == .busy && error.canRetry)
      expect(error.subject != nil)
    }
    try folder.close()
  }

  @Test("the numbers are those of HTTP")
  func numbers() {
    for kind in ErrorKind.allCases { expect(400...599 ~= kind.httpStatus, "\(kind)") }
    expect(Set(ErrorKind.allCases.map(\.rawValue)).count, equals: ErrorKind.allCases.count)
  }
}
