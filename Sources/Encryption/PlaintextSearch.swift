import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// One pass over a file in search of samples, in constant memory.
public enum PlaintextSearch {
  /// What a pass has found.
  public struct Result {
    /// How the bytes are spread.
    public var entropy = ByteEntropy()
    /// The first places.
    public var matches: [PlaintextSamples.Match] = []
    /// How many places there are.
    public var places = 0

    /// Of nothing.
    public init() {}
  }

  private static let chunkBytes = 256 << 10

  /// Searches all of an open file, which may be written to meanwhile, and leaves it open.
  ///
  /// - Parameters:
  ///   - path: the file's, for errors.
  ///   - isStructure: tells blocks that hold no data (`EngineType.isStructure`).
  ///   - matchLimit: of how many places it is said what was found there.
  ///   - onProgress: is told the bytes of each step; what it throws ends the search.
  public static func run(
    _ file: Int32, path: String, for samples: PlaintextSamples, matchLimit: Int = 8,
    isStructure: ((UnsafeRawBufferPointer, Int) -> Bool)? = nil,
    onProgress: (Int) throws -> Void
  ) throws -> Result {
    var result = Result()
    let lookahead = PlaintextSamples.lookahead
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: chunkBytes + 2 * lookahead, alignment: 4_096)
    defer { buffer.deallocate() }
    guard let base = buffer.baseAddress else { return result }
    // Bytes in the buffer that were read already and not searched yet, and where in the file it begins.
    var kept = 0
    var offset = 0
    while true {
      let count = try read(file, path, into: base + kept, chunkBytes, at: offset + kept)
      result.entropy.add(
        UnsafeRawBufferPointer(start: base + kept, count: count), isStructure: isStructure)
      let filled = kept + count
      let isEnd = count < chunkBytes
      if isEnd { (base + filled).initializeMemory(as: UInt8.self, repeating: 0, count: lookahead) }
      let places = isEnd ? max(0, filled - PlaintextSamples.leastBytes + 1) : filled - lookahead
      samples.search(UnsafeRawPointer(base), count: places) { place, sample, isUTF16 in
        guard place + samples.length(sample, isUTF16: isUTF16) <= filled else { return }
        result.places += 1
        guard result.matches.count < matchLimit else { return }
        result.matches.append(samples.match(sample, at: offset + place, isUTF16: isUTF16))
      }
      try onProgress(count)
      if isEnd { return result }
      kept = filled - places
      base.copyMemory(from: base + places, byteCount: kept)
      offset += places
    }
  }

  /// As many bytes as there are, up to `count`.
  private static func read(
    _ file: Int32, _ path: String, into target: UnsafeMutableRawPointer, _ count: Int, at offset: Int
  ) throws -> Int {
    var done = 0
    while done < count {
      let result = pread(file, target + done, count - done, off_t(offset + done))
      if result < 0 && errno == EINTR { continue }
      guard result >= 0 else { throw StorageError.system(errno, "can't read", path) }
      guard result > 0 else { break }
      done += result
    }
    return done
  }
}
