import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Searches a file for samples, in one pass and in constant memory.
package enum PlaintextSearch {
  /// The result of a pass.
  package struct Result {
    /// The entropy of the file's bytes.
    package var entropy = ByteEntropy()
    /// The first matches, at most `matchLimit`.
    package var matches: [PlaintextSamples.Match] = []
    /// The number of all matches.
    package var places = 0

    /// Creates a result of no bytes.
    package init() {}
  }

  private static let chunkBytes = 256 << 10

  /// Searches a whole open file and leaves it open. The file may be written to meanwhile.
  ///
  /// - Parameters:
  ///   - path: the file's path, for errors.
  ///   - isStructure: returns true for blocks that contain no data (`EngineType.isStructure`).
  ///   - matchLimit: the maximum number of matches to describe.
  ///   - onProgress: called with the number of bytes of each step. An error ends the search.
  package static func run(
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
    // The number of bytes in the buffer that were read but not searched yet, and the file offset of the
    // buffer.
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

  /// Reads up to `count` bytes. Returns less only at the end of the file.
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
