// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Touchstone

// The functions of rows. Those that can't fail take a handle that isn't one as rows without anything.

@c @implementation
public func touchstone_rows_free(_ rows: OpaquePointer?) { Handles.free(rows) }

@c @implementation
public func touchstone_rows_width(_ rows: OpaquePointer?) -> Int32 {
  value(of: rows, RowsHandle.self, otherwise: 0) { Int32(clamping: $0.columnNames.count) }
}

@c @implementation
public func touchstone_rows_name(
  _ rows: OpaquePointer?, _ column: Int32, _ length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar>? {
  guard let name = value(of: rows, RowsHandle.self, otherwise: nil, { $0.name(Int(column)) }) else {
    length?.pointee = 0
    let none: StaticString = ""
    return UnsafeRawPointer(none.utf8Start).assumingMemoryBound(to: CChar.self)
  }
  length?.pointee = name.count - 1
  return name.baseAddress
}

@c @implementation
public func touchstone_rows_count(_ rows: OpaquePointer?) -> Int64 {
  value(of: rows, RowsHandle.self, otherwise: -1) { Int64($0.count ?? -1) }
}

@c @implementation
public func touchstone_rows_json(
  _ rows: OpaquePointer?, _ bytes: Int, _ json: UnsafeMutablePointer<UnsafePointer<CChar>?>?,
  _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int64 {
  number(error) {
    let handle = try Handles.content(rows, RowsHandle.self)
    guard let json else { throw Misuse("there is no place for the JSON: the pointer is NULL", .badRequest) }
    return Int64(
      try handle.readJSON(bytes: bytes < 0 ? .max : bytes) { text in
        json.pointee = text.baseAddress?.assumingMemoryBound(to: CChar.self)
        length?.pointee = text.count
      })
  }
}

@c @implementation
public func touchstone_rows_next(_ rows: OpaquePointer?, _ error: ErrorPlace?) -> Int32 {
  Int32(truncatingIfNeeded: number(error) { try Handles.content(rows, RowsHandle.self).next() ? 1 : 0 })
}

@c @implementation
public func touchstone_row_type(_ rows: OpaquePointer?, _ column: Int32) -> Int32 {
  value(of: rows, RowsHandle.self, otherwise: Int32(TOUCHSTONE_MISSING)) { $0.type(Int(column)) }
}

@c @implementation
public func touchstone_row_int64(_ rows: OpaquePointer?, _ column: Int32) -> Int64 {
  value(of: rows, RowsHandle.self, otherwise: 0) { $0.int64(Int(column)) }
}

@c @implementation
public func touchstone_row_double(_ rows: OpaquePointer?, _ column: Int32) -> Double {
  value(of: rows, RowsHandle.self, otherwise: 0) { $0.double(Int(column)) }
}

@c @implementation
public func touchstone_row_text(
  _ rows: OpaquePointer?, _ column: Int32, _ length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar>? {
  guard let text = value(of: rows, RowsHandle.self, otherwise: nil, { $0.text(Int(column)) }) else {
    length?.pointee = 0
    return nil
  }
  length?.pointee = text.count
  return text.baseAddress?.assumingMemoryBound(to: CChar.self)
}

@c @implementation
public func touchstone_rows_column(
  _ rows: OpaquePointer?, _ column: Int32, _ result: UnsafeMutablePointer<touchstone_column>?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let handle = try Handles.content(rows, RowsHandle.self)
    guard let result else {
      throw Misuse("there is no place for the column: the pointer is NULL", .badRequest)
    }
    let layout = try handle.column(Int(column))
    result.pointee = touchstone_column(
      type: Int32(layout.type), count: Int64(layout.count), null_count: Int64(layout.nullCount),
      validity: UnsafePointer(layout.validity), values: UnsafeRawPointer(layout.values),
      offsets: UnsafePointer(layout.offsets))
  }
}
