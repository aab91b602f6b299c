// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Touchstone

#if canImport(FoundationEssentials)
  import FoundationEssentials
#endif

extension Database {
  /// Sets when a document expires, in milliseconds since 1970; the greatest number for never.
  func setExpiration(of id: String, atMilliseconds milliseconds: Int64) throws {
    let date = milliseconds == .max ? nil : Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
    try setExpiration(of: id, at: date)
  }

  /// When a document expires, in milliseconds since 1970; the greatest number for never.
  func expirationMilliseconds(of id: String) throws -> Int64 {
    guard let date = try expiration(of: id) else { return .max }
    return Int64((date.timeIntervalSince1970 * 1_000).rounded())
  }
}

extension Revision {
  /// What C is told of it.
  func json(withBody: Bool) -> JSONValue {
    var members: JSONObject = [
      "id": .string(id.description), "parent": parent.map { .string($0.description) } ?? .null,
      "sequence": JSONValue(sequence), "deleted": .bool(isDeleted), "leaf": .bool(isLeaf),
      "current": .bool(isCurrent), "hasBody": .bool(hasBody),
    ]
    if withBody { members["body"] = body ?? .null }
    return .object(members)
  }
}

@c @implementation
public func touchstone_revisions(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ bodies: Int32,
  _ json: TextPlace?,
  _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let found = try handle.perform { try $0.revisions(of: id, withBodies: bodies != 0) }
    guard let revisions = found else { throw NoDocument(id) }
    try hand(.array(revisions.map { $0.json(withBody: bodies != 0) }), to: json, length)
  }
}

@c @implementation
public func touchstone_revision_body(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
  _ revision: UnsafePointer<CChar>?,
  _ revision_length: Int, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let revision = try requiredRevisionID(revision, revision_length)
    guard let found = try handle.perform({ try $0.revision(revision, of: id) }) else {
      throw NoDocument(id, "the revision \(revision) isn't known")
    }
    guard let body = found.body else {
      throw NoDocument(id, "the body of the revision \(revision) isn't kept any more")
    }
    try hand(body, to: json, length)
  }
}

@c @implementation
public func touchstone_resolve(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
  _ revision: UnsafePointer<CChar>?,
  _ revision_length: Int, _ merged: UnsafePointer<CChar>?, _ merged_length: Int, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let revision = try requiredRevisionID(revision, revision_length)
    let body = merged == nil ? nil : DocumentBody.json(Array(bytes(merged, merged_length)))
    try handle.perform { try $0.resolveConflict(of: id, keeping: revision, merged: body) }
  }
}

@c @implementation
public func touchstone_apply(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ json: UnsafePointer<CChar>?,
  _ json_length: Int, _ history: UnsafePointer<CChar>?, _ history_length: Int, _ is_deleted: Int32,
  _ error: ErrorPlace?
) -> Int32 {
  Int32(
    truncatingIfNeeded: number(error) {
      let handle = try Handles.content(database, DatabaseHandle.self)
      let id = try string(id, id_length, "the ID of the document")
      guard case .array(let items) = try JSONValue(json: bytes(history, history_length)) else {
        throw Misuse("the history isn't a JSON array", .badRequest)
      }
      let history = items.compactMap(\.string)
      guard history.count == items.count else {
        throw Misuse("the history has what isn't the ID of a revision", .badRequest)
      }
      let body = json == nil ? [:] : DocumentBody.json(Array(bytes(json, json_length)))
      let revision = PulledRevision(id: id, history: history, isDeleted: is_deleted != 0, body: body)
      return try handle.perform { try $0.apply(revision) } ? 1 : 0
    })
}

// MARK: Batches

@c @implementation
public func touchstone_batch(
  _ database: OpaquePointer?, _ body: (@convention(c) (UnsafeMutableRawPointer?) -> Int32)?,
  _ context: UnsafeMutableRawPointer?, _ attempts: Int32, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    guard let body else { throw Misuse("the batch has no body: it is NULL", .badRequest) }
    try handle.batch(attempts: Int(attempts)) {
      let status = body(context)
      if status != 0 { throw CallerStatus(status: status) }
    }
  }
}

@c @implementation
public func touchstone_begin(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(database, DatabaseHandle.self).begin() }
}

@c @implementation
public func touchstone_commit(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(database, DatabaseHandle.self).end { try $0.commit() } }
}

@c @implementation
public func touchstone_rollback(_ database: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(database, DatabaseHandle.self).end { $0.rollBack() } }
}
