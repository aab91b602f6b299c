/// A set of page numbers as a bitmap.
struct PageSet {
  private var words: [UInt64] = []
  private(set) var count = 0

  /// Inserts a page. Returns false if it was in the set already.
  mutating func insert(_ page: UInt64) -> Bool {
    let word = Int(page / 64)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: max(word + 1, words.count * 2) - words.count))
    }
    let bit = UInt64(1) << (page % 64)
    if words[word] & bit != 0 { return false }
    words[word] |= bit
    count += 1
    return true
  }

  func contains(_ page: UInt64) -> Bool {
    let word = Int(page / 64)
    return word < words.count && words[word] & (UInt64(1) << (page % 64)) != 0
  }

  func count(from page: UInt64) -> Int {
    let first = Int(page / 64)
    guard first < words.count else { return 0 }
    let below = (UInt64(1) << (page % 64)) - 1
    return words[(first + 1)...].reduce((words[first] & ~below).nonzeroBitCount) { $0 + $1.nonzeroBitCount }
  }

  func intersection(_ other: PageSet) -> [UInt64] {
    var pages: [UInt64] = []
    for word in 0..<min(words.count, other.words.count) {
      var common = words[word] & other.words[word]
      while common != 0 {
        pages.append(UInt64(word) * 64 + UInt64(common.trailingZeroBitCount))
        common &= common - 1
      }
    }
    return pages
  }
}
