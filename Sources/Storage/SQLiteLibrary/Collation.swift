import CSQLite

/// Collations: comparisons of strings that statements of a connection can use.
extension Connection {
  /// Compares two strings given as UTF-8 bytes. Returns a negative number, zero or a positive number.
  package typealias Comparison = @Sendable (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Int

  /// Registers a collation under `name` until the connection is closed.
  ///
  /// Files of other programs may name collations of their own. A statement that uses such a column or index
  /// needs the collation first.
  package func createCollation(_ name: String, _ compare: @escaping Comparison) throws {
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
