import TestTools

@testable import StorageEncrypted
@testable import StorageLMDB

/// What LMDB stores of its own in an encrypted file.
@Suite struct OuterPageTests {
  /// A page with a list of free pages, and with what was there before behind it.
  private func list(_ numbers: [UInt64], behind: [UInt8]) -> [UInt8] {
    var page = [UInt8](repeating: 0, count: RecordFormat.pageBytes)
    func put(_ value: some FixedWidthInteger, at offset: Int) {
      withUnsafeBytes(of: value.littleEndian) { page.replaceSubrange(offset..<(offset + $0.count), with: $0) }
    }
    put(UInt64(3), at: 0)
    put(PageFlags.overflow, at: 10)
    for (index, number) in ([UInt64(numbers.count)] + numbers).enumerated() {
      put(number, at: RecordFormat.pageHeaderBytes + index * 8)
    }
    let start = RecordFormat.pageHeaderBytes + (numbers.count + 1) * 8
    page.replaceSubrange(start..<(start + behind.count), with: behind)
    return page
  }

  private func isStructure(_ page: [UInt8]) -> Bool {
    page.withUnsafeBytes { OuterPage.isStructure($0, at: 3 * RecordFormat.pageBytes) }
  }

  @Test func remainsBehindAListOfFreePagesAreNoFault() {
    let remains = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) }
    expect(isStructure(list([9, 8, 7], behind: [])))
    expect(isStructure(list([9, 8, 7], behind: remains)))
    // Numbers that are none, and plaintext.
    expect(!isStructure(list([9, 8, UInt64.max], behind: remains)))
    expect(!isStructure(list([9, 8, 7], behind: remains + Array("the quick brown fox jumps".utf8))))
  }
}
