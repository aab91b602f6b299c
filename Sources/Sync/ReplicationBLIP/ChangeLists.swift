// The bodies of change lists and of their answers:
//
//   changes         := [[sequence, id, revision, deleted, size], …]     deleted: 0, 1, false, true, or bits; missing: 0
//   proposed        := [[id, revision, parent, size], …]                parent: "" if none is known
//   offer answers   := [[ancestor, …] | 0, …]                           a list: the revision is wanted
//   proposal answer := [status | {"status": status, "rev": current, "ended": ended}, …]
//                      0: send it; 304: known; 409: conflict
//
// `ended` is true if the peer has deleted the branch of the proposed revision.
//
// Zeros at the end of an answer may be left out. Bits of `deleted`: 1 tombstone, 2 the user may not read the document any
// more, 4 it left all channels of the user.

import BLIP
import Bytes
import Documents
import Fleece
import Replication
import Transport

/// Writes and reads change lists.
enum ChangeLists {
  /// The most changes of a list, and the most answers.
  static let maximumCount = 10_000
  /// The longest sequence in bytes of JSON.
  static let maximumSequenceBytes = 4_096
  /// The longest text of a list, in bytes, and the most values in it.
  static let maximumBytes = 8 << 20
  static let maximumValues = 250_000

  // MARK: Changes that are offered

  static func body(_ changes: [OfferedChange]) -> [UInt8] {
    var writer = JSONWriter(capacity: 32 + changes.count * 80)
    list(&writer, changes) { writer, change in
      append(change.sequence.json, to: &writer)
      writer.append(byte: comma)
      writer.append(string: change.id)
      writer.append(byte: comma)
      writer.append(string: change.revision)
      writer.append(byte: comma)
      writer.append(Int64(change.isDeleted ? 1 : 0))
      writer.append(byte: comma)
      writer.append(Int64(change.bodyBytes))
    }
    return bytes(writer)
  }

  static func offered(_ body: ArraySlice<UInt8>) throws -> [OfferedChange] {
    try items(body).map { item in
      guard case .array(let parts) = item, parts.count >= 3, let id = parts[1].string,
        let revision = parts[2].string
      else { throw malformed("a change isn't [sequence, ID, revision, …]", .blip) }
      let flags: Int64 =
        switch parts.count > 3 ? parts[3] : 0 {
        case .bool(let isDeleted): isDeleted ? 1 : 0
        case let other: other.int ?? 0
        }
      var change = OfferedChange(
        sequence: try sequence(parts[0]), id: id, revision: revision, isDeleted: flags & 1 != 0,
        bodyBytes: parts.count > 4 ? Int(clamping: parts[4].int ?? 0) : 0)
      // 1 deleted, 2 revoked, 4 removed. Sync Gateway says 5 of a tombstone that was pushed to it: a deletion like others.
      change.isAccessLost = flags & 6 != 0 && flags != 5
      return change
    }
  }

  static func body(_ answers: [OfferAnswer]) -> [UInt8] {
    let count = answers.lastIndex { $0 != .unwanted }.map { $0 + 1 } ?? 0
    var writer = JSONWriter(capacity: 16 + count * 4)
    writer.append(byte: UInt8(ascii: "["))
    for index in 0..<count {
      if index > 0 { writer.append(byte: comma) }
      switch answers[index] {
      case .unwanted: writer.append(Int64(0))
      case .wanted(let ancestors):
        list(&writer, wrapped: false, ancestors) { $0.append(string: $1) }
      }
    }
    writer.append(byte: UInt8(ascii: "]"))
    return bytes(writer)
  }

  static func offerAnswers(_ body: ArraySlice<UInt8>, count: Int) throws -> [OfferAnswer] {
    let items = try items(body)
    guard items.count <= count else { throw malformed("\(items.count) answers to \(count) changes") }
    var answers = try items.map { item -> OfferAnswer in
      guard case .array(let ancestors) = item else { return .unwanted }
      return .wanted(
        possibleAncestors: try ancestors.prefix(100).map { ancestor in
          guard let revision = ancestor.string else { throw malformed("an ancestor isn't a revision ID") }
          return revision
        })
    }
    answers += Array(repeating: .unwanted, count: count - answers.count)
    return answers
  }

  // MARK: Changes that are proposed

  static func body(_ changes: [ProposedChange]) -> [UInt8] {
    var writer = JSONWriter(capacity: 32 + changes.count * 100)
    list(&writer, changes) { writer, change in
      writer.append(string: change.id)
      writer.append(byte: comma)
      writer.append(string: change.revision)
      writer.append(byte: comma)
      writer.append(string: change.remoteRevision ?? "")
      writer.append(byte: comma)
      writer.append(Int64(change.bodyBytes))
    }
    return bytes(writer)
  }

  static func proposed(_ body: ArraySlice<UInt8>) throws -> [ProposedChange] {
    try items(body).map { item in
      guard case .array(let parts) = item, parts.count >= 2, let id = parts[0].string,
        let revision = parts[1].string
      else { throw malformed("a proposed change isn't [ID, revision, …]", .blip) }
      let parent = parts.count > 2 ? parts[2].string ?? "" : ""
      return ProposedChange(
        id: id, revision: revision, remoteRevision: parent.isEmpty ? nil : parent,
        bodyBytes: parts.count > 3 ? Int(clamping: parts[3].int ?? 0) : 0)
    }
  }

  static func body(_ statuses: [ProposalStatus], withCurrent: Bool) -> [UInt8] {
    let count = statuses.lastIndex { $0 != .send }.map { $0 + 1 } ?? 0
    var writer = JSONWriter(capacity: 16 + count * 4)
    writer.append(byte: UInt8(ascii: "["))
    for index in 0..<count {
      if index > 0 { writer.append(byte: comma) }
      switch statuses[index] {
      case .send: writer.append(Int64(0))
      case .known: writer.append(Int64(304))
      case .conflict(let current?) where withCurrent:
        append("{\"status\":409,\"rev\":", to: &writer)
        writer.append(string: current)
        writer.append(byte: UInt8(ascii: "}"))
      case .ended(let current) where withCurrent:
        append("{\"status\":409,\"ended\":true,\"rev\":", to: &writer)
        writer.append(string: current)
        writer.append(byte: UInt8(ascii: "}"))
      case .conflict, .ended: writer.append(Int64(409))
      case .refused(let error): writer.append(Int64(error.domain == .http ? error.code : 500))
      }
    }
    writer.append(byte: UInt8(ascii: "]"))
    return bytes(writer)
  }

  static func statuses(_ body: ArraySlice<UInt8>, count: Int) throws -> [ProposalStatus] {
    let items = try items(body)
    guard items.count <= count else { throw malformed("\(items.count) answers to \(count) proposed changes") }
    var statuses = items.map { item -> ProposalStatus in
      let code = item.int ?? item.object?["status"]?.int ?? 500
      switch code {
      case 0: return .send
      case 304: return .known
      case 409:
        let current = item.object?["rev"]?.string
        if let current, item.object?["ended"] == .bool(true) { return .ended(current: current) }
        return .conflict(current: current)
      default:
        return .refused(
          ReplicationError(.http, Int(clamping: code), "the peer refuses the document with status \(code)"))
      }
    }
    statuses += Array(repeating: .send, count: count - statuses.count)
    return statuses
  }

  // MARK: JSON

  private static let comma = UInt8(ascii: ",")

  private static func list<Item>(
    _ writer: inout JSONWriter, wrapped: Bool = true, _ items: [Item],
    _ append: (inout JSONWriter, Item) -> Void
  ) {
    writer.append(byte: UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { writer.append(byte: comma) }
      if wrapped { writer.append(byte: UInt8(ascii: "[")) }
      append(&writer, item)
      if wrapped { writer.append(byte: UInt8(ascii: "]")) }
    }
    writer.append(byte: UInt8(ascii: "]"))
  }

  private static func append(_ json: String, to writer: inout JSONWriter) {
    var json = json
    json.withUTF8 { writer.append(json: UnsafeRawBufferPointer($0)) }
  }

  private static func bytes(_ writer: borrowing JSONWriter) -> [UInt8] {
    var bytes: [UInt8] = []
    writer.write(to: &bytes)
    return bytes
  }

  private static func items(_ body: ArraySlice<UInt8>) throws -> [JSONValue] {
    // An empty body is an empty list, and so is the `null` of Sync Gateway.
    if body.isEmpty { return [] }
    let value = try json(body, "a list of changes")
    if value == .null { return [] }
    guard case .array(let items)? = value else {
      throw malformed("a list of changes isn't a JSON array", .blip)
    }
    guard items.count <= maximumCount else { throw malformed("a list has \(items.count) changes", .blip) }
    return items
  }

  /// The value of a body that isn't a document's; nil if it isn't JSON. Throws if it has too much in it to be read at once.
  static func json(_ body: ArraySlice<UInt8>, _ what: String) throws -> JSONValue? {
    guard body.count <= maximumBytes, body.withUnsafeBytes({ JSONMeasure($0).values }) <= maximumValues else {
      throw malformed("\(what) has more than \(maximumBytes) bytes or \(maximumValues) values", .blip)
    }
    return try? body.withUnsafeBytes { try JSONValue(json: $0) }
  }

  private static func sequence(_ value: JSONValue) throws -> RemoteSequence {
    if case .int(let number) = value { return RemoteSequence(json: String(number)) }
    guard let json = try? value.canonicalJSON(), json.utf8.count <= maximumSequenceBytes else {
      throw malformed("a sequence can't be read", .blip)
    }
    return RemoteSequence(json: json)
  }

  /// The error of a message that can't be read, in the domain that LiteCore gives it.
  static func malformed(_ what: String, _ domain: ReplicationError.Domain = .http) -> ReplicationError {
    ReplicationError(domain, 400, what)
  }
}
