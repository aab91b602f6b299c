import Bytes
import Storage

/// Returns the JSON of the document that a row refers to (`StoredRow.kind` is `.document`).
package typealias DocumentExpansion = (_ row: borrowing StoredRow) throws -> [UInt8]

/// What a view's rows are reduced with.
///
/// A reduction's result depends on the rows alone: not on the blocks in which they were reduced, nor on the order
/// of changes. So stored partial reductions are a function of the rows too.
package protocol Reducer: Sendable {
  /// Names the algorithm and the form of its partials. It is stored with them; another one rebuilds them.
  var identity: String { get }
  /// Whether partials of parts give the reduction of the whole. A reducer without this gets all rows at once.
  var canRereduce: Bool { get }
  /// Whether some values make the reduction an error. One such value in any row is enough for the whole view to have none.
  var refusesValues: Bool { get }
  /// Makes an accumulator.
  func makeReduction() throws -> any Reduction
}

extension Reducer {
  package var refusesValues: Bool { false }
}

/// An accumulator. One thread at a time.
///
/// `add` and `merge` are called in the order of rows.
package protocol Reduction: AnyObject {
  /// Forgets all rows.
  func reset()
  /// Adds the row after all others.
  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws
  /// Adds the rows of a partial after all others. Throws `damaged`.
  func merge(_ partial: RawSpan) throws
  /// Adds a row somewhere among the others. Returns false if it can't. The caller then resets the reduction and
  /// adds all rows.
  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool
  /// Takes a row out. Returns false if it can't. The caller then resets the reduction and adds the other rows.
  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool
  /// Appends the partial. Equal rows give equal bytes.
  func write(to partial: inout ByteBuffer) throws
  /// Appends the result, as JSON.
  func result(to json: inout [UInt8]) throws
}

extension Reduction {
  package func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool { false }
  package func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool { false }
}

extension StoredRow {
  /// Lends the JSON of the value: of the document if the row refers to it, `null` if there is no value.
  borrowing func withValue(
    expanding: DocumentExpansion, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    switch kind {
    case .json: try valueJSON.withUnsafeBytes(body)
    case .document: try expanding(self).withUnsafeBytes(body)
    case .none: try withNull(body)
    }
  }
}

private let nullText: StaticString = "null"

private func withNull(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
  try body(UnsafeRawBufferPointer(start: nullText.utf8Start, count: nullText.utf8CodeUnitCount))
}
