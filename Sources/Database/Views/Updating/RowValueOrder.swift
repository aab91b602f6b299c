import Bytes
import Scripts

/// The order of the rows of one document with equal keys in views of design documents: that of their values, in the collation of
/// the view's keys. CouchDB sorts them too. Equal values stay in the order of their emission. Used on one thread at a time.
final class RowValueOrder {
  /// The encoders of the views' keys.
  private let encoders: [ViewKeyEncoder]
  private let batch: ScriptBatch
  /// The place in the batch of the document that the rows are of. It is the value of some rows.
  var document = 0

  init(_ encoders: [ViewKeyEncoder], _ batch: ScriptBatch) {
    self.encoders = encoders
    self.batch = batch
  }

  /// A value as it is compared. One that is too long for a key comes last, by the bytes of its JSON.
  private struct Value {
    let index: Int
    let isTooLong: Bool
    let bytes: [UInt8]

    func isBefore(_ other: Value) -> Bool {
      if isTooLong != other.isTooLong { return other.isTooLong }
      if bytes != other.bytes { return bytes.lexicographicallyPrecedes(other.bytes) }
      return index < other.index
    }
  }

  /// Sorts rows with equal keys. `stored` gives the stored value of a row.
  func sort(_ rows: inout ArraySlice<Int>, view: Int, stored: (Int) -> UnsafeRawBufferPointer) {
    let values = rows.map { index in value(index, stored(index), encoders[view]) }.sorted {
      $0.isBefore($1)
    }
    for (place, value) in zip(rows.indices, values) { rows[place] = value.index }
  }

  private func value(_ index: Int, _ stored: UnsafeRawBufferPointer, _ encoder: ViewKeyEncoder) -> Value {
    var found = Value(index: index, isTooLong: true, bytes: [])
    func take(_ json: UnsafeRawBufferPointer) {
      var buffer = ByteBuffer(capacity: 64)
      let isTooLong = (try? encoder.append(json: json, to: &buffer)) == nil
      found = Value(
        index: index, isTooLong: isTooLong, bytes: isTooLong ? Array(json) : [UInt8](buffer.bytes))
    }
    switch StoredRow.valueKind(stored) {
    case .json: take(StoredRow.valueJSON(stored))
    case .document: batch.withJSON(document, take)
    case .none: Array("null".utf8).withUnsafeBytes(take)
    }
    return found
  }
}
