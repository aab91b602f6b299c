import CSQLite

/// A comparison of strings that a connection can use in its statements.
extension Connection {
  /// Compares two strings as UTF-8 bytes: negative, zero or positive.
  public typealias Comparison = @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Int

  /// Makes a collation known under `name`, for as long as the connection is open. Files that others made
  /// need theirs before a statement can touch a column or an index that names it.
  public func createCollation(_ name: String, _ compare: @escaping Comparison) throws {
    let box = Unmanaged.passRetained(ComparisonBox(compare))
    let code = csqlite_create_collation_v2(
      functions, handle, name, SQLITE_UTF8, box.toOpaque(),
      { context, leftCount, left, rightCount, right in
        guard let context else { return 0 }
        let compare = Unmanaged<ComparisonBox>.fromOpaque(context).takeUnretainedValue().compare
        let order = compare(
          UnsafeRawBufferPointer(start: left, count: Int(leftCount)),
          UnsafeRawBufferPointer(start: right, count: Int(rightCount)))
        return Int32(order.signum())
      },
      { context in
        if let context { Unmanaged<ComparisonBox>.fromOpaque(context).release() }
      })
    guard code == SQLITE_OK else {
      // The library doesn't call the destructor of a collation that it refuses.
      box.release()
      throw error(code, "collation \(name)")
    }
  }
}

private final class ComparisonBox {
  let compare: Connection.Comparison
  init(_ compare: @escaping Connection.Comparison) { self.compare = compare }
}
