// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Touchstone

/// The writer of a blob that C fills.
final class BlobWriterHandle {
  let writer: BlobWriter
  init(_ writer: BlobWriter) { self.writer = writer }
}

/// The reader of a blob that C reads.
final class BlobHandle {
  let reader: BlobReader
  init(_ reader: BlobReader) { self.reader = reader }
}

@c @implementation
public func touchstone_blob_writer_new(
  _ database: OpaquePointer?, _ writer: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(writer)
    let handle = try Handles.content(database, DatabaseHandle.self)
    hand(BlobWriterHandle(try handle.database.makeBlobWriter()), to: writer)
  }
}

@c @implementation
public func touchstone_blob_write(
  _ writer: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: Int, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(writer, BlobWriterHandle.self)
    guard count >= 0, count == 0 || bytes != nil else {
      throw Misuse("there are no \(count) bytes for the blob", .badRequest)
    }
    try handle.writer.write(UnsafeRawBufferPointer(start: bytes, count: count))
  }
}

@c @implementation
public func touchstone_blob_finish(
  _ writer: OpaquePointer?, _ content_type: UnsafePointer<CChar>?, _ content_type_length: Int,
  _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(writer, BlobWriterHandle.self)
    try check(json)
    let type = try string(content_type, content_type_length, "the content type")
    let blob = Blob(try handle.writer.finish(), type.isEmpty ? nil : type)
    try hand(blob.jsonValue, to: json, length)
  }
}

@c @implementation
public func touchstone_blob_writer_free(_ writer: OpaquePointer?) { Handles.free(writer) }

@c @implementation
public func touchstone_blob_open(
  _ database: OpaquePointer?, _ reference: UnsafePointer<CChar>?, _ reference_length: Int,
  _ blob: HandlePlace?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(blob)
    let handle = try Handles.content(database, DatabaseHandle.self)
    let reference = try string(reference, reference_length, "the reference to the blob")
    let digest =
      BlobDigest(reference)
      ?? (try? JSONValue(json: reference))?.object.flatMap { $0["digest"]?.string.flatMap { BlobDigest($0) } }
    guard let digest else {
      throw Misuse(
        "this is neither a digest, sha1-…, nor the object of a blob: \(reference.prefix(100))", .badRequest)
    }
    // The length isn't looked at.
    hand(BlobHandle(try handle.database.open(Blob(digest: digest, length: 0))), to: blob)
  }
}

@c @implementation
public func touchstone_blob_length(_ blob: OpaquePointer?) -> UInt64 {
  value(of: blob, BlobHandle.self, otherwise: 0) { $0.reader.length }
}

@c @implementation
public func touchstone_blob_read(
  _ blob: OpaquePointer?, _ buffer: UnsafeMutableRawPointer?, _ capacity: Int, _ error: ErrorPlace?
) -> Int64 {
  number(error) {
    let handle = try Handles.content(blob, BlobHandle.self)
    guard capacity >= 0, capacity == 0 || buffer != nil else {
      throw Misuse("there is no buffer of \(capacity) bytes", .badRequest)
    }
    return Int64(try handle.reader.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity)))
  }
}

@c @implementation
public func touchstone_blob_seek(_ blob: OpaquePointer?, _ offset: UInt64, _ error: ErrorPlace?) -> Int32 {
  status(error) { try Handles.content(blob, BlobHandle.self).reader.seek(to: offset) }
}

@c @implementation
public func touchstone_blob_free(_ blob: OpaquePointer?) { Handles.free(blob) }
