/// What a source gives for the row at hand: a document, an item of UNNEST or of another source.
///
/// Plain memory: whoever scans stores one into `EvaluationContext.rows` for each row. What it points at has to stay
/// until the next.
struct SourceRow: BitwiseCopyable {
  /// The document's body, or the item; missing for the side of an outer join that has no partner.
  var value: QueryValue = .missing
  /// The document's ID; without bytes for what is no document.
  var id: TextSlice = .empty
  /// The document's sequence; 0 for what is no document.
  var sequence: UInt64 = 0
  var isDeleted = false
  /// The stored record, for what is rarely asked: the revision's ID.
  var record = UnsafeRawBufferPointer(start: nil, count: 0)

  /// Whether there is a document.
  var isDocument: Bool { sequence != 0 }
}
