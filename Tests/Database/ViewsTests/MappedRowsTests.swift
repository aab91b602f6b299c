import Bytes
import TestSupport
import Testing

@testable import Views

/// The rows of an update before they are stored.
@Suite struct MappedRowsTests {
  @Test("rows are sorted by their whole keys", arguments: [0, 1, 2, 100, 129, 5_000], [1, 3, 12, 40])
  func sorting(_ count: Int, _ common: Int) {
    var random = SystemRandomNumberGenerator()
    let rows = MappedRows()
    for number in 0..<count {
      Array("document-\(number)".utf8).withUnsafeBytes { rows.begin($0, sequence: 1) }
      // Keys of all lengths, of few different bytes, that have their first bytes in common.
      let length = Int.random(in: 0...12, using: &random)
      let end = (0..<length).map { _ in UInt8.random(in: 2...4, using: &random) }
      let key = [UInt8](repeating: 7, count: common) + end
      let start = rows.state.pointee.bytes.count
      key.withUnsafeBytes { key in
        rows.state.pointee.bytes.append(key)
        rows.state.pointee.add(view: number % 2, keyAt: start, keyJSON: key, .none) { _ in }
      }
      rows.end()
    }
    for view in 0..<2 {
      let sorted = rows.sortedRows(ofView: view).map { rows.rows[$0] }
      expect(sorted.count, equals: (count + 1 - view) / 2)
      for (left, right) in zip(sorted, sorted.dropFirst()) {
        expect(compareBytes(rows.rowKey(left), rows.rowKey(right)) < 0)
        expect(left.view == Int32(view) && right.view == Int32(view))
      }
    }
  }

  @Test("keys of a document that are too many bytes together are left out, and reported")
  func tooManyKeys() throws {
    let rows = MappedRows()
    let encoder = try ViewKeyEncoder(.ascii)
    let emitter = RowEmitter(rows, encoder, .empty, keyLimit: 1_000)
    emitter.begin(view: 0, encoder)
    func emit(_ count: Int, _ length: Int) {
      Array("d".utf8).withUnsafeBytes { rows.begin($0, sequence: 1) }
      for number in 0..<count {
        let key = String(repeating: "x", count: length) + "\(number)"
        emitter.emit(key, .none) { _ in }
      }
    }
    emit(9, 97)
    expect(emitter.endDocument() == nil)
    rows.end()
    // The next document begins at nothing.
    emit(12, 97)
    let failure = emitter.endDocument()
    expect(failure?.contains("1000 bytes together") ?? false, "\(failure ?? "-")")
    rows.end()
    expect(emitter.endDocument() == nil)
    expect(rows.documents.map(\.rowCount), equals: [9, 9])
    // What is left is whole.
    for row in rows.rows { expect(row.keyLength == 100 && rows.rowKey(row).count == 102) }
    expect(rows.sortedRows(ofView: 0).count, equals: 18)
  }

  @Test("documents are sorted by their whole IDs", arguments: [0, 1, 2, 100, 129, 3_000])
  func sortedDocuments(_ count: Int) {
    var random = SystemRandomNumberGenerator()
    let rows = MappedRows()
    let ids = (0..<count).map { Array("document-\($0)".utf8) }
    for id in ids.shuffled(using: &random) {
      id.withUnsafeBytes { rows.begin($0, sequence: 1) }
      rows.end()
    }
    let order = rows.sortedDocuments() ?? ContiguousArray(0..<count)
    expect(
      order.map { [UInt8](rows.id(rows.documents[$0])) },
      equals: ids.sorted { $0.lexicographicallyPrecedes($1) })
    expect(count > 2 || rows.documents.count == count)
  }

  @Test("documents have their IDs, whether they have rows and whatever bytes the IDs have")
  func documentIDs() throws {
    let rows = MappedRows()
    let encoder = try ViewKeyEncoder(.ascii)
    let emitter = RowEmitter(rows, encoder, .empty)
    let ids: [[UInt8]] = ["plain", "none", "é"].map { Array($0.utf8) } + [[0, 1, 2], [1], [0x41, 0]]
    for (place, id) in ids.enumerated() {
      id.withUnsafeBytes { rows.begin($0, sequence: 1) }
      if place != 1, place != 4 { for key in ["k", "k", "a"] { emitter.emit(key, .none) { _ in } } }
      rows.end()
    }
    expect(rows.documents.map { [UInt8](rows.id($0)) }, equals: ids)
    expect(rows.documents.map(\.rowCount), equals: [3, 0, 3, 3, 0, 3])
    expect(rows.rows.map(\.emission), equals: [0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0])
    for row in rows.rows {
      let stored = try StoredRow(rows.rowKey(row).bytes, rows.value(row).bytes)
      expect(stored.emission, equals: row.emission)
      var id: [UInt8] = []
      StoredRow.unescape(stored.escapedID, into: &id)
      expect(id, equals: ids[Int(row.document)])
    }
  }

  @Test("an emission that can't be stored leaves nothing behind")
  func failedEmissions() throws {
    let rows = MappedRows()
    let encoder = try ViewKeyEncoder(.raw)
    let emitter = RowEmitter(rows, encoder, .empty)
    Array("d".utf8).withUnsafeBytes { rows.begin($0, sequence: 1) }
    let before = rows.state.pointee.bytes.count
    emitter.emit(["a", JSONValue.double(.infinity)] as JSONValue, .none) { _ in }
    emitter.emit("k", .json) { _ in throw ViewKeyError.damaged }
    emitter.emit(String(repeating: "k", count: ViewKeyEncoder.maximumBytes + 1), .none) { _ in }
    expect(rows.state.pointee.bytes.count, equals: before)
    expect(rows.rows.isEmpty)
    // The first one is told of.
    expect(emitter.endDocument()?.hasPrefix("an emission can't be stored") ?? false)
    expect(emitter.endDocument() == nil)
    emitter.emit("k", .json) { try RowEmitter.write(1, to: &$0) }
    rows.end()
    expect(rows.rows.count, equals: 1)
  }
}
