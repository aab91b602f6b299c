import TestTools

@testable import Storage

/// What a copy is held against: any other row of entries has to give another number.
@Suite("Digests of entries") struct EntryDigestTests {
  typealias Entries = [(key: [UInt8], value: [UInt8])]

  private func digest(_ entries: Entries, behind count: Int = 0) -> EntryDigest {
    var digest = EntryDigest(behind: count)
    for entry in entries {
      entry.key.withUnsafeBytes { key in entry.value.withUnsafeBytes { digest.add(key, $0) } }
    }
    return digest
  }

  @Test("each bit of a key and of a value counts, at every length") func bits() {
    var random = SeededGenerator(seed: testSeed)
    for count in Array(0...140) + [500, 1_000] {
      let entry = (key: random.bytes(1 + count % 40), value: random.bytes(count))
      let whole = digest([entry]).value
      for bit in 0..<(8 * entry.key.count) {
        var other = entry
        other.key[bit / 8] ^= 1 << (bit % 8)
        expect(digest([other]).value != whole, "bit \(bit) of a key of \(entry.key.count)")
      }
      for bit in 0..<(8 * count) {
        var other = entry
        other.value[bit / 8] ^= 1 << (bit % 8)
        expect(digest([other]).value != whole, "bit \(bit) of a value of \(count)")
      }
      let longer = digest([(entry.key, entry.value + [0])]).value
      expect(longer != whole, "a zero behind \(count)")
    }
  }

  @Test("order, repetition and where keys end count") func places() {
    var random = SeededGenerator(seed: testSeed)
    let entries: Entries = (0..<40).map { (random.bytes(10), random.bytes($0 * 7)) }
    let whole = digest(entries).value
    for index in 1..<entries.count {
      var swapped = entries
      swapped.swapAt(index - 1, index)
      expect(digest(swapped).value != whole)
      var moved = entries
      moved[index].key.append(moved[index].value.removeFirst())
      expect(digest(moved).value != whole)
      var twice = entries
      twice[index] = twice[index - 1]
      expect(digest(twice).value != whole)
    }
  }

  @Test("parts of a row add up to the whole") func parts() {
    var random = SeededGenerator(seed: testSeed)
    let entries: Entries = (0..<30).map { (random.bytes(5), random.bytes($0 * 11)) }
    let whole = digest(entries)
    for cut in 0...entries.count {
      var sum = digest(Array(entries[..<cut]))
      sum.add(digest(Array(entries[cut...]), behind: cut))
      expect(sum.value == whole.value && sum.entries == whole.entries && sum.bytes == whole.bytes)
    }
  }
}
