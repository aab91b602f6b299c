// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Touchstone

// The functions of rows. Those that can't fail take a handle that isn't one as rows without anything.

@c @implementation
public func touchstone_rows_free(_ rows: OpaquePointer?) { Handles.free(rows) }

@c @implementation
public func touchstone_rows_width(_ rows: OpaquePointer?) -> Int32 {
  Int32(clamping: (try? Handles.content(rows, RowsHandle.self))?.columnNames.count ?? 0)
}

/// The name of a column that isn't there. It lives as long as the process.
private nonisolated(unsafe) let noName: UnsafePointer<CChar> = {
  let text = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
  text.initialize(to: 0)
  return UnsafePointer(text)
}()

@c @implementation
public func touchstone_rows_name(
  _ rows: OpaquePointer?, _ column: Int32, _ length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar>? {
  guard let name = (try? Handles.content(rows, RowsHandle.self))?.name(Int(column)) else {
    length?.pointee = 0
    return noName
  }
  length?.pointee = name.count - 1
  return name.baseAddress
}

@c @implementation
public func touchstone_rows_count(_ rows: OpaquePointer?) -> Int64 {
  Int64((try? Handles.content(rows, RowsHandle.self))?.count ?? -1)
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
  (try? Handles.content(rows, RowsHandle.self))?.type(Int(column)) ?? Int32(TOUCHSTONE_MISSING)
}

@c @implementation
public func touchstone_row_int64(_ rows: OpaquePointer?, _ column: Int32) -> Int64 {
  (try? Handles.content(rows, RowsHandle.self))?.int64(Int(column)) ?? 0
}

@c @implementation
public func touchstone_row_double(_ rows: OpaquePointer?, _ column: Int32) -> Double {
  (try? Handles.content(rows, RowsHandle.self))?.double(Int(column)) ?? 0
}

@c @implementation
public func touchstone_row_text(
  _ rows: OpaquePointer?, _ column: Int32, _ length: UnsafeMutablePointer<Int>?
) -> UnsafePointer<CChar>? {
  guard let text = (try? Handles.content(rows, RowsHandle.self))?.text(Int(column)) else {
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
