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
      key.withUnsafeBytes { key in
        rows.add(
          view: number % 2, key: key, keyJSON: key, .none,
          valueJSON: UnsafeRawBufferPointer(start: nil, count: 0))
      }
      rows.end()
    }
    for view in 0..<2 {
      let sorted = rows.sortedRows(ofView: view)
      #expect(sorted.count == (count + 1 - view) / 2)
      for (left, right) in zip(sorted, sorted.dropFirst()) {
        #expect(compareBytes(rows.rowKey(left), rows.rowKey(right)) < 0)
        #expect(left.view == Int32(view) && right.view == Int32(view))
      }
    }
  }
}
