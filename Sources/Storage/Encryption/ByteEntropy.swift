#if canImport(Glibc)
  import Glibc
#endif

/// The entropy of bytes, in bits per byte: 8 for random bytes, 4 to 6 for text.
///
/// It is inaccurate for few bytes: n random bytes give about 8 - 184 / n. From 4,096 bytes on (7.955, with a
/// standard deviation of 0.004) it distinguishes encrypted from plain data. It doesn't distinguish compressed
/// from encrypted data.
package struct ByteEntropy {
  /// The number of bytes of a block. Fewer bytes aren't judged.
  package static let blockBytes = 4_096
  /// A whole block below this value isn't encrypted. It is 100 standard deviations below the value of random
  /// bytes.
  package static let leastOfBlock = 7.5

  /// The length of a run of zeros that encrypted bytes never have.
  private static let longRun = 32
  /// The least number of bytes of a block, without long runs of zeros, that are judged.
  private static let leastJudged = 512

  private var counts = [UInt64](repeating: 0, count: 256)
  private var blockCounts = [UInt32](repeating: 0, count: 512)
  /// c · log2(c) for all possible counts in a block.
  private static let terms: [Double] = (0...blockBytes).map { $0 == 0 ? 0 : Double($0) * log2(Double($0)) }

  /// The number of bytes that were added.
  package private(set) var bytes: UInt64 = 0
  /// The number of those bytes that aren't structure.
  private var judged: UInt64 = 0
  /// The lowest entropy of a whole block, without long runs of zeros. Nil if there was none.
  package private(set) var lowest: Double?
  /// The offset of that block.
  package private(set) var lowestOffset: UInt64 = 0

  /// Creates an entropy of no bytes.
  package init() {}

  /// Adds the next bytes. Each call except the last must add whole blocks. `isStructure` is called with a
  /// block and the offset of its first byte. Blocks for which it returns true count only for `bytes`.
  package mutating func add(
    _ bytes: UnsafeRawBufferPointer, isStructure: ((UnsafeRawBufferPointer, Int) -> Bool)? = nil
  ) {
    var start = 0
    while start < bytes.count {
      let end = min(start + Self.blockBytes, bytes.count)
      let block = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      if isStructure?(block, Int(self.bytes)) ?? false {
        self.bytes += UInt64(block.count)
      } else {
        addBlock(block)
      }
      start = end
    }
  }

  private mutating func addBlock(_ block: UnsafeRawBufferPointer) {
    // Two rows of counters: a byte that repeats doesn't have to wait for its previous increment.
    blockCounts.withUnsafeMutableBufferPointer { counters in
      var index = 0
      while index + 1 < block.count {
        counters[Int(block[index])] &+= 1
        counters[256 + Int(block[index + 1])] &+= 1
        index += 2
      }
      if index < block.count { counters[Int(block[index])] &+= 1 }
    }
    let isWhole = block.count == Self.blockBytes
    var sum = 0.0
    var zeros: UInt32 = 0
    for value in 0..<256 {
      let count = blockCounts[value] + blockCounts[256 + value]
      blockCounts[value] = 0
      blockCounts[256 + value] = 0
      counts[value] += UInt64(count)
      if value == 0 { zeros = count }
      if isWhole { sum += Self.terms[Int(count)] }
    }
    // A power loss can leave the end of a file as zeros, from the middle of a block. Zeros aren't plaintext.
    let unwritten = isWhole && zeros >= Self.longRun ? Self.zerosInLongRuns(block) : 0
    let judgedBytes = block.count - unwritten
    if isWhole, judgedBytes >= Self.leastJudged {
      sum += Self.terms[Int(zeros) - unwritten] - Self.terms[Int(zeros)]
      // Fewer random bytes have less entropy. The correction makes all blocks comparable.
      let missing = 184 / Double(judgedBytes) - 184 / Double(Self.blockBytes)
      let entropy = log2(Double(judgedBytes)) - sum / Double(judgedBytes) + missing
      if entropy < lowest ?? .infinity {
        lowest = entropy
        lowestOffset = bytes
      }
    }
    bytes += UInt64(block.count)
    judged += UInt64(block.count)
  }

  private static func zerosInLongRuns(_ block: UnsafeRawBufferPointer) -> Int {
    var sum = 0
    var run = 0
    for byte in block {
      if byte == 0 {
        run += 1
        continue
      }
      if run >= longRun { sum += run }
      run = 0
    }
    return run >= longRun ? sum + run : sum
  }

  /// The entropy of all added bytes that aren't structure, in bits per byte. Nil if they are less than a
  /// block.
  package var value: Double? {
    guard judged >= UInt64(Self.blockBytes) else { return nil }
    let sum = counts.reduce(0.0) { $0 + ($1 == 0 ? 0 : Double($1) * log2(Double($1))) }
    return log2(Double(judged)) - sum / Double(judged)
  }
}
