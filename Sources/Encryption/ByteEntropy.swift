#if canImport(Glibc)
  import Glibc
#endif

/// How evenly bytes are spread over their 256 values, in bits a byte: 8 for what is random, 4 to 6 for text.
///
/// Of few bytes it says little: n random bytes give about 8 - 184 / n, so from 4,096 on (7.955, with a deviation of
/// 0.004) what is encrypted is told from what isn't. What is compressed isn't told from what is encrypted.
public struct ByteEntropy {
  /// Bytes in a block: the least that is judged.
  public static let blockBytes = 4_096
  /// A whole block below this isn't encrypted: 100 deviations from what random bytes give.
  public static let leastOfBlock = 7.5

  private var counts = [UInt64](repeating: 0, count: 256)
  private var blockCounts = [UInt32](repeating: 0, count: 512)
  /// c · log2(c) of all counts in a block.
  private static let terms: [Double] = (0...blockBytes).map { $0 == 0 ? 0 : Double($0) * log2(Double($0)) }

  /// How many bytes were counted.
  public private(set) var bytes: UInt64 = 0
  /// The lowest entropy of a whole block that isn't all zeros; nil when there was none.
  public private(set) var lowest: Double?
  /// Where that block begins.
  public private(set) var lowestOffset: UInt64 = 0

  /// Of no bytes.
  public init() {}

  /// Counts the next bytes: whole blocks, but for the last ones. Blocks that `isStructure` tells, with the offset of
  /// their first byte, aren't judged alone.
  public mutating func add(
    _ bytes: UnsafeRawBufferPointer, isStructure: ((UnsafeRawBufferPointer, Int) -> Bool)? = nil
  ) {
    var start = 0
    while start < bytes.count {
      let end = min(start + Self.blockBytes, bytes.count)
      let block = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
      addBlock(block, isJudged: !(isStructure?(block, Int(self.bytes)) ?? false))
      start = end
    }
  }

  private mutating func addBlock(_ block: UnsafeRawBufferPointer, isJudged: Bool) {
    // Two rows of counters: the same byte twice in a row doesn't wait for itself.
    blockCounts.withUnsafeMutableBufferPointer { counters in
      var index = 0
      while index + 1 < block.count {
        counters[Int(block[index])] &+= 1
        counters[256 + Int(block[index + 1])] &+= 1
        index += 2
      }
      if index < block.count { counters[Int(block[index])] &+= 1 }
    }
    let isWhole = isJudged && block.count == Self.blockBytes
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
    if isWhole, zeros < UInt32(block.count) {
      let entropy = log2(Double(block.count)) - sum / Double(block.count)
      if entropy < lowest ?? .infinity {
        lowest = entropy
        lowestOffset = bytes
      }
    }
    bytes += UInt64(block.count)
  }

  /// Bits a byte of all that was counted; nil for less than a block.
  public var value: Double? {
    guard bytes >= UInt64(Self.blockBytes) else { return nil }
    let sum = counts.reduce(0.0) { $0 + ($1 == 0 ? 0 : Double($1) * log2(Double($1))) }
    return log2(Double(bytes)) - sum / Double(bytes)
  }
}
