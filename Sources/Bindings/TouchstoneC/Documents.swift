// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

extension ConcurrencyControl {
  /// The rule with a number of C.
  init(number: Int32) throws {
    switch number {
    case Int32(TOUCHSTONE_LAST_WRITE_WINS): self = .lastWriteWins
    case Int32(TOUCHSTONE_FAIL_ON_CONFLICT): self = .fail
    case Int32(TOUCHSTONE_ALLOW_CONFLICT): self = .allowConflict
    default: throw Misuse("there is no policy \(number) for conflicts", .badRequest)
    }
  }
}

extension Document {
  /// What C is told of its current revision.
  fileprivate var revisionForC: touchstone_revision {
    touchstone_revision(
      revisionID, sequence: sequence,
      flags: (isDeleted ? UInt32(TOUCHSTONE_DELETED) : 0)
        | (isConflicted ? UInt32(TOUCHSTONE_CONFLICTED) : 0))
  }
}

@c @implementation
public func touchstone_read(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int,
  _ buffer: UnsafeMutableRawPointer?,
  _ capacity: Int, _ revision: UnsafeMutablePointer<touchstone_revision>?, _ error: ErrorPlace?
) -> Int64 {
  number(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let read = try handle.perform { database in
      try database.withJSON(of: id) { document in
        let json = document.body
        // TOUCHSTONE_NUL would be a negative capacity.
        if let buffer, let start = json.baseAddress, json.count <= capacity {
          memcpy(buffer, start, json.count)
          if let revision { revision.pointee = touchstone_revision(document) }
        }
        return Int64(json.count)
      }
    }
    return read ?? -Int64(TOUCHSTONE_NOT_FOUND)
  }
}

@c @implementation
public func touchstone_get(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ flags: UInt32,
  _ json: TextPlace?,
  _ length: UnsafeMutablePointer<Int>?, _ revision: UnsafeMutablePointer<touchstone_revision>?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    guard flags & ~UInt32(TOUCHSTONE_DELETED) == 0 else {
      throw Misuse("touchstone_get has no flags \(flags)", .badRequest)
    }
    if flags == 0 {
      let isThere: Void? = try handle.perform { database in
        try database.withJSON(of: id) { document in
          try hand(document.body, to: json, length)
          if let revision { revision.pointee = touchstone_revision(document) }
        }
      }
      guard isThere != nil else { throw NoDocument(id) }
      return
    }
    let found = try handle.perform { try $0.document(id, includeDeleted: true) }
    guard let document = found else { throw NoDocument(id) }
    try document.withJSON { try hand($0, to: json, length) }
    revision?.pointee = document.revisionForC
  }
}

/// There is no such document, or not that part of it.
struct NoDocument: TouchstoneError {
  let id: String
  let what: String
  var kind: ErrorKind { .notFound }
  var subject: ErrorSubject? { .document(id) }
  var description: String { "\(what): document \"\(id)\"" }

  init(_ id: String, _ what: String = "there is no such document") {
    self.id = id
    self.what = what
  }
}

@c @implementation
public func touchstone_save(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ json: UnsafePointer<CChar>?,
  _ json_length: Int, _ base: UnsafePointer<CChar>?, _ base_length: Int, _ policy: Int32,
  _ saved: UnsafeMutablePointer<touchstone_revision>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let control = try ConcurrencyControl(number: policy)
    let base = try revisionID(base, base_length)
    let json = bytes(json, json_length)
    let result = try handle.perform { database in
      if base == nil { return try database.save(id, json: json, onConflict: control) }
      return try database.save(id, .json(Array(json)), basedOn: base, onConflict: control)
    }
    saved?.pointee = touchstone_revision(result)
  }
}

@c @implementation
public func touchstone_save_many(
  _ database: OpaquePointer?, _ texts: UnsafePointer<CChar>?, _ lengths: UnsafePointer<UInt64>?, _ count: Int,
  _ policy: Int32, _ saved: UnsafeMutablePointer<touchstone_revision>?, _ failed: UnsafeMutablePointer<Int>?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let control = try ConcurrencyControl(number: policy)
    guard count >= 0, count == 0 || (texts != nil && lengths != nil) else {
      throw Misuse("there are no texts or lengths of \(count) documents", .badRequest)
    }
    guard count > 0, let texts = texts.map({ UnsafeRawPointer($0) }), let lengths else { return }
    var number = 0
    do {
      try handle.perform { database in
        try database.inBatch {
          var next = texts
          func take(_ index: Int) throws -> UnsafeRawBufferPointer {
            guard let length = Int(exactly: lengths[index]) else {
              throw Misuse("the length of a text is \(lengths[index])", .badRequest)
            }
            defer { next += length }
            return UnsafeRawBufferPointer(start: next, count: length)
          }
          for index in 0..<count {
            number = index
            let id = try take(2 * index)
            let body = try take(2 * index + 1)
            guard let id = String(validating: id, as: UTF8.self) else {
              throw Misuse("the ID of the document isn't UTF-8", .badRequest)
            }
            let result = try database.save(id, json: body, onConflict: control)
            saved?[index] = touchstone_revision(result)
          }
        }
      }
    } catch {
      failed?.pointee = number
      throw error
    }
  }
}

@c @implementation
public func touchstone_delete(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ base: UnsafePointer<CChar>?,
  _ base_length: Int, _ policy: Int32, _ saved: UnsafeMutablePointer<touchstone_revision>?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let control = try ConcurrencyControl(number: policy)
    let base = try revisionID(base, base_length)
    let result = try handle.perform { try $0.delete(id, basedOn: base, onConflict: control) }
    saved?.pointee = touchstone_revision(result, isDeleted: true)
  }
}

@c @implementation
public func touchstone_purge(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ branch: UnsafePointer<CChar>?,
  _ branch_length: Int, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    let branch = try revisionID(branch, branch_length)
    try handle.perform { database in
      if let branch { try database.purge(id, branch: branch) } else { try database.purge(id) }
    }
  }
}

@c @implementation
public func touchstone_set_expiration(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ milliseconds: Int64,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    try handle.perform { try $0.setExpiration(of: id, atMilliseconds: milliseconds) }
  }
}

@c @implementation
public func touchstone_expiration(
  _ database: OpaquePointer?, _ id: UnsafePointer<CChar>?, _ id_length: Int, _ error: ErrorPlace?
) -> Int64 {
  guard !ForkedChild.isThisProcess else {
    _ = ForkedChild.refuse(error)
    return .min
  }
  do {
    let handle = try Handles.content(database, DatabaseHandle.self)
    let id = try string(id, id_length, "the ID of the document")
    return try handle.perform { try $0.expirationMilliseconds(of: id) }
  } catch let failed {
    _ = failure(failed, error)
    return .min
  }
}
