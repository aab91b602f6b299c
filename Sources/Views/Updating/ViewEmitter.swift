import Documents
import Fleece

/// Takes the rows that a map function emits. It can't leave the function.
///
/// ```swift
/// try view.setMap(version: "1") { document, emit in
///   emit(document["type"], document["name"])
/// }
/// ```
public struct ViewEmitter: ~Escapable {
  private let rows: RowEmitter

  @_lifetime(borrow rows)
  init(_ rows: borrowing RowEmitter) { self.rows = copy rows }

  // MARK: Keys and values in place

  /// Emits a row. Without a key, there is no row.
  public func callAsFunction(_ key: Value?, _ value: Value?) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      try rows.setValue(value)
    }
  }

  /// Emits a row without a value.
  public func callAsFunction(_ key: Value?) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      .none
    }
  }

  /// Emits a row.
  @_disfavoredOverload
  public func callAsFunction(_ key: Value?, _ value: (any JSONConvertible)?) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      try rows.setValue(value)
    }
  }

  /// Emits a row with the document itself as the value, which isn't stored again.
  public func callAsFunction(_ key: Value?, _ document: MappedDocument) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      .document
    }
  }

  // MARK: Keys in memory

  /// Emits a row. Without a key, there is no row; `JSONValue.null` is a key.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ value: (any JSONConvertible)? = nil) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      try rows.setValue(value)
    }
  }

  /// Emits a row. Without a key, there is no row; `JSONValue.null` is a key.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ value: Value?) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      try rows.setValue(value)
    }
  }

  /// Emits a row with the document itself as the value, which isn't stored again.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ document: MappedDocument) {
    let rows = rows
    rows.take {
      try rows.setKey(key)
    } value: {
      .document
    }
  }

  // MARK: Special keys

  /// Emits a row for an index of places or texts. Its key is null.
  public func callAsFunction(_ key: some SpecialKey) {
    let rows = rows
    rows.take(key) { .none }
  }

  /// Emits a row for an index of places or texts. Its key is null.
  public func callAsFunction(_ key: some SpecialKey, _ value: Value?) {
    let rows = rows
    rows.take(key) { try rows.setValue(value) }
  }

  /// Emits a row for an index of places or texts. Its key is null.
  @_disfavoredOverload
  public func callAsFunction(_ key: some SpecialKey, _ value: (any JSONConvertible)?) {
    let rows = rows
    rows.take(key) { try rows.setValue(value) }
  }

  /// Emits a row for an index of places or texts, with the document itself as the value. Its key is null.
  public func callAsFunction(_ key: some SpecialKey, _ document: MappedDocument) {
    let rows = rows
    rows.take(key) { .document }
  }
}
