import Storage
import TestSupport

@testable import Query

@Suite("Documents that joins look up again and again")
struct LookupMemoTests {
  private func bytes<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    var text = text
    return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
  }

  private func keep(_ memo: LookupMemo, _ id: String, _ record: String) {
    bytes(id) { id in bytes(record) { memo.keep(id, $0) } }
  }

  private func record(_ memo: LookupMemo, _ id: String) -> String? {
    bytes(id) { memo.record(of: $0).map { String(decoding: $0, as: UTF8.self) } }
  }

  @Test("What was kept is found under its ID only, and absence is kept too")
  func finds() {
    let memo = LookupMemo(memoryLimit: 1 << 20)
    expect(record(memo, "a") == nil)
    keep(memo, "a", "first")
    keep(memo, "b", "")
    expect(record(memo, "a"), equals: "first")
    expect(record(memo, "b"), equals: "")
    expect(record(memo, "ab") == nil)
    expect(record(memo, "") == nil)
  }

  @Test("A memo of thousands of documents stays small and never answers for another ID")
  func isBounded() {
    let memo = LookupMemo(memoryLimit: 64 << 20)
    for number in 0..<5000 {
      // Longer and shorter ones in turn.
      keep(memo, "document \(number)", String(repeating: "x", count: number % 1000) + "\(number)")
      if let known = record(memo, "document \(number)") { expect(known.hasSuffix("\(number)")) }
    }
    var found = 0
    for number in 0..<5000 {
      guard let known = record(memo, "document \(number)") else { continue }
      expect(known, equals: String(repeating: "x", count: number % 1000) + "\(number)")
      found += 1
    }
    expect(found > 100 && found <= 256)
    expect(memo.used > 0 && memo.used <= 256 * 4096)
  }

  @Test("Large documents aren't kept, and none beyond half of the query's memory")
  func leavesLargeOnes() {
    let memo = LookupMemo(memoryLimit: 1000)
    keep(memo, "large", String(repeating: "x", count: 4096))
    expect(record(memo, "large") == nil)
    keep(memo, "a", String(repeating: "x", count: 300))
    keep(memo, "b", String(repeating: "x", count: 300))
    expect(record(memo, "a") != nil)
    expect(record(memo, "b") == nil)
    expect(memo.used <= 500)
  }

  @Test("A memo that finds nothing gives up")
  func givesUp() {
    let memo = LookupMemo(memoryLimit: 1 << 20)
    for number in 0..<255 { expect(record(memo, "\(number)") == nil) }
    expect(memo.isUseful)
    expect(record(memo, "more") == nil)
    expect(!memo.isUseful)
  }

  @Test("Copies stay from run to run only while the data are the same, and don't take much memory")
  func staysForOneVersion() {
    let memo = LookupMemo(memoryLimit: 64 << 20)
    let version = SnapshotVersion(engine: 1, number: 7)
    memo.begin(version)
    keep(memo, "a", "first")
    memo.end()
    memo.begin(version)
    expect(record(memo, "a"), equals: "first")
    memo.end()
    for other in [SnapshotVersion(engine: 1, number: 8), SnapshotVersion(engine: 2, number: 8), nil] {
      memo.begin(other)
      expect(record(memo, "a") == nil)
      keep(memo, "a", "of \(String(describing: other))")
      memo.end()
    }
    // Without a version nothing stays, not even for another run without one.
    memo.begin(nil)
    expect(record(memo, "a") == nil)
    memo.end()
    memo.begin(version)
    for number in 0..<200 { keep(memo, "document \(number)", String(repeating: "x", count: 1_000)) }
    expect(memo.used > 64 << 10)
    memo.end()
    expect(memo.used, equals: 0)
  }
}
