/// The current row of a source: a document, or an item of UNNEST.
///
/// It is plain memory. The code that scans stores one into `EvaluationContext.rows` for each row. The memory
/// that it points at has to stay valid until the next row.
struct SourceRow: BitwiseCopyable {
  /// The document's body, or the item. Missing for a source of an outer join without a match.
  var value: QueryValue = .missing
  /// The document's ID. Empty when the row isn't a document.
  var id: TextSlice = .empty
  /// The document's sequence. 0 when the row isn't a document.
  var sequence: UInt64 = 0
  var isDeleted = false
  /// The stored record. Only META's revision ID needs it.
  var record = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Whether the row is a document.
  var isDocument: Bool { sequence != 0 }
}
