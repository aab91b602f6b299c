import Bytes
import Fleece
import Foundation
import HTTP
import Storage

extension CouchModel {
  struct Refused: Error {
    let status: Int
    let error: String
    let reason: String
    init(_ status: Int, _ error: String, _ reason: String) {
      (self.status, self.error, self.reason) = (status, error, reason)
    }
  }

  static func json(_ value: JSONValue, status: Int = 200) -> MiniAnswer {
    MiniAnswer(status, ((try? value.canonicalJSON()) ?? "null") + "\n")
  }

  static func value(_ request: MiniRequest) throws -> JSONValue {
    guard request.headers.first("content-type") == "application/json" else {
      throw Refused(415, "bad_content_type", "Content-Type must be application/json")
    }
    guard let value = request.body.withUnsafeBytes({ try? JSONValue(json: $0) }) else {
      throw Refused(400, "bad_request", "invalid UTF-8 JSON")
    }
    return value
  }

  /// Answers a request as CouchDB does.
  func answer(_ request: MiniRequest) -> MiniAnswer {
    do { return try answering(request) } catch let refused as Refused {
      let isWanted = state.withLock { $0.missing.values.contains(refused.status) }
      if !isWanted && ![404, 401, 403, 409, 412, 413, 415, 405, 429, 501, 500].contains(refused.status)
        || refused.error == "odd"
      {
        state.withLock {
          $0.complaints.append("\(request.method) \(request.path): \(refused.error) \(refused.reason)")
        }
      }
      return Self.json(
        ["error": .string(refused.error), "reason": .string(refused.reason)], status: refused.status)
    } catch { return MiniAnswer(500, "{\"error\":\"model\",\"reason\":\"\(error)\"}") }
  }

  private func answering(_ request: MiniRequest) throws -> MiniAnswer {
    let segments = request.segments
    if segments == ["_session"] {
      var answer = Self.json(["ok": true, "name": "admin", "roles": ["_admin"]])
      answer.headers.append(("Set-Cookie", "AuthSession=abc; Version=1; Path=/; HttpOnly"))
      return answer
    }
    guard segments.first == name else { throw Refused(404, "not_found", "Database does not exist.") }
    if segments.count == 1 {
      if request.method == "PUT" {
        let isNew = state.withLock { state in
          defer { state.exists = true }
          return !state.exists
        }
        if !isNew { throw Refused(412, "file_exists", "The database could not be created") }
        return MiniAnswer(201)
      }
      guard state.withLock({ $0.exists }) else { throw Refused(404, "not_found", "Database does not exist.") }
      return Self.json([
        "db_name": .string(name), "update_seq": state.withLock { sequence($0.sequence, $0) },
        "instance_start_time": .string(instanceStartTime),
      ])
    }
    guard state.withLock({ $0.exists }) else { throw Refused(404, "not_found", "Database does not exist.") }
    let isBusy = state.withLock { state in
      state.busy -= state.busy > 0 ? 1 : 0
      return state.busy > 0
    }
    if isBusy {
      var answer = MiniAnswer(429, "{\"error\":\"too_many_requests\"}")
      answer.headers.append(("Retry-After", "0"))
      return answer
    }
    if let status = state.withLock({ $0.missing[segments[1]] }) {
      throw Refused(status, "not_found", "missing")
    }
    switch segments[1] {
    case "_changes": return try changes(request)
    case "_bulk_get": return try bulkGet(request)
    case "_revs_diff": return try difference(request)
    case "_bulk_docs": return try bulkDocuments(request)
    case "_ensure_full_commit":
      guard request.headers.first("content-type") == "application/json" else {
        throw Refused(415, "odd", "Content-Type must be application/json")
      }
      return Self.json(["ok": true, "instance_start_time": .string(instanceStartTime)], status: 201)
    case "_local": return try local(request, segments.dropFirst(2).joined(separator: "/"))
    default: break
    }
    var rest = segments.dropFirst()
    var id = rest.removeFirst()
    if id == "_design", let name = rest.popFirst() { id += "/" + name }
    if request.method == "PUT" { return try put(request, id) }
    if rest.isEmpty { return try read(request, id) }
    return try attachment(request, id, rest.joined(separator: "/"))
  }
}
