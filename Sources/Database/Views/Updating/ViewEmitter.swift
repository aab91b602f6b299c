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
  // Whoever makes it keeps the rows until the function returns.
  private unowned(unsafe) let rows: RowEmitter

  @_lifetime(borrow rows)
  init(_ rows: borrowing RowEmitter) { self.rows = copy rows }

  // MARK: Keys and values in place

  /// Emits a row. Without a key, there is no row.
  public func callAsFunction(_ key: Value?, _ value: Value?) {
    guard let key else { return }
    rows.emit(key, value)
  }

  /// Emits a row without a value.
  public func callAsFunction(_ key: Value?) {
    guard let key else { return }
    rows.emit(key, .none) { _ in }
  }

  /// Emits a row.
  @_disfavoredOverload
  public func callAsFunction(_ key: Value?, _ value: (any JSONConvertible)?) {
    guard let key else { return }
    rows.emit(key, value == nil ? .none : .json) { if let value { try RowEmitter.write(value, to: &$0) } }
  }

  /// Emits a row with the document itself as the value, which isn't stored again.
  public func callAsFunction(_ key: Value?, _ document: MappedDocument) {
    guard let key else { return }
    rows.emit(key, .document) { _ in }
  }

  // MARK: Keys in memory

  /// Emits a row. Without a key, there is no row; `JSONValue.null` is a key.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ value: (any JSONConvertible)? = nil) {
    guard let key else { return }
    rows.emit(key, value == nil ? .none : .json) { if let value { try RowEmitter.write(value, to: &$0) } }
  }

  /// Emits a row. Without a key, there is no row; `JSONValue.null` is a key.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ value: Value?) {
    guard let key else { return }
    guard let value else { return rows.emit(key, .none) { _ in } }
    rows.emit(key, .json) { try rows.write(value, to: &$0) }
  }

  /// Emits a row with the document itself as the value, which isn't stored again.
  @_disfavoredOverload
  public func callAsFunction(_ key: (any JSONConvertible)?, _ document: MappedDocument) {
    guard let key else { return }
    rows.emit(key, .document) { _ in }
  }

  // MARK: Special keys

  /// Emits a row for an index of places or texts. Its key is null.
  public func callAsFunction(_ key: some SpecialKey) {
    rows.emit(key, .none) { _ in }
  }

  /// Emits a row for an index of places or texts. Its key is null.
  public func callAsFunction(_ key: some SpecialKey, _ value: Value?) {
    guard let value else { return rows.emit(key, .none) { _ in } }
    rows.emit(key, .json) { try rows.write(value, to: &$0) }
  }

  /// Emits a row for an index of places or texts. Its key is null.
  @_disfavoredOverload
  public func callAsFunction(_ key: some SpecialKey, _ value: (any JSONConvertible)?) {
    rows.emit(key, value == nil ? .none : .json) { if let value { try RowEmitter.write(value, to: &$0) } }
  }

  /// Emits a row for an index of places or texts, with the document itself as the value. Its key is null.
  public func callAsFunction(_ key: some SpecialKey, _ document: MappedDocument) {
    rows.emit(key, .document) { _ in }
  }
}
