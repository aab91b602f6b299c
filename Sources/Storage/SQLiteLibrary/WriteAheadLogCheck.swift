#if canImport(Glibc)
  import Glibc
#endif

/// Looks for commits in a write-ahead log that SQLite leaves out without a word.
///
/// SQLite reads a log up to the first frame that isn't sound, and takes what is behind that for remains of an older log. After a crash this
/// is right. But if the file was damaged, commits are lost, and nothing else says so. The form of a log is that of
/// https://www.sqlite.org/fileformat2.html#the_write_ahead_log. Pages may be encrypted: checksums are those of what is in the file.
package struct WriteAheadLogCheck {
  /// What is wrong.
  package struct Damage: Sendable {
    /// Where SQLite stops to read, in bytes from the beginning of the log.
    package let offset: Int
    /// What was found there: a clause.
    package let message: String
  }

  private static let headerBytes = 32
  private static let frameHeaderBytes = 24

  private let file: Int32
  private let length: Int
  private var pageBytes = 0
  private var salts: [UInt8] = []
  private var isBigEndian = false
  private var sum: (UInt32, UInt32) = (0, 0)

  /// Returns the damage of the log at `path`. Nil if there is no log, or if it has no commit behind a frame that isn't sound.
  ///
  /// Reads the whole file once. Throws an `SQLiteError` if it can't be read.
  package static func damage(of path: String) throws -> Damage? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT { return nil }
      throw failure()
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw failure() }
    guard status.st_size > headerBytes else { return nil }
    var check = WriteAheadLogCheck(file: file, length: Int(status.st_size))
    return try check.run()
  }

  private static func failure() -> SQLiteError {
    SQLiteError(
      extendedCode: 10, message: "the write-ahead log can't be read: \(String(cString: strerror(errno)))",
      statement: nil, systemError: errno)
  }

  private init(file: Int32, length: Int) {
    self.file = file
    self.length = length
  }

  private mutating func run() throws -> Damage? {
    let header = try bytes(at: 0, Self.headerBytes)
    isBigEndian = Self.number(header, 0) == 0x377F_0683
    pageBytes = Int(Self.number(header, 8))
    add(header[..<24])
    guard isBigEndian || Self.number(header, 0) == 0x377F_0682, 512...65_536 ~= pageBytes,
      pageBytes & (pageBytes - 1) == 0, isSum(header[24...])
    else { return Damage(offset: 0, message: "its header is damaged") }
    salts = Array(header[16..<24])
    let frameBytes = Self.frameHeaderBytes + pageBytes
    let count = (length - Self.headerBytes) / frameBytes
    func offset(_ frame: Int) -> Int { Self.headerBytes + frame * frameBytes }
    for frame in 0..<count {
      let content = try bytes(at: offset(frame), frameBytes)
      add(content[..<8])
      add(content[Self.frameHeaderBytes...])
      guard isOfThisLog(content), isSum(content[16..<24]) else {
        for later in frame + 1..<max(count, frame + 1) {
          let header = try bytes(at: offset(later), Self.frameHeaderBytes)
          // Frames that end no transaction may be of one that was rolled back.
          if isOfThisLog(header), Self.number(header, 4) != 0 {
            return Damage(offset: offset(frame), message: "commits are behind a frame that is damaged")
          }
        }
        return nil
      }
    }
    let rest = try bytes(at: offset(count), min(Self.frameHeaderBytes, length - offset(count)))
    guard rest.count >= 16, isOfThisLog(rest) else { return nil }
    return Damage(offset: offset(count), message: "it was cut off within a frame")
  }

  /// Whether a frame belongs to the log that the header began.
  private func isOfThisLog(_ frame: [UInt8]) -> Bool { frame[8..<16].elementsEqual(salts) }

  /// Adds an even number of words to the sum.
  private mutating func add(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBytes { bytes in
      var (first, second) = sum
      for offset in stride(from: 0, to: bytes.count, by: 8) {
        first &+= word(bytes, offset) &+ second
        second &+= word(bytes, offset + 4) &+ first
      }
      sum = (first, second)
    }
  }

  private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
    return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
  }

  /// Whether the eight bytes are the sum up to here.
  private func isSum(_ bytes: ArraySlice<UInt8>) -> Bool {
    let bytes = Array(bytes)
    return Self.number(bytes, 0) == sum.0 && Self.number(bytes, 4) == sum.1
  }

  private static func number(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    bytes[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }

  private func bytes(at offset: Int, _ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let read = bytes.withUnsafeMutableBytes {
        pread(file, $0.baseAddress! + done, count - done, off_t(offset + done))
      }
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { throw Self.failure() }
      // Somebody shortened the file.
      guard read > 0 else { return Array(bytes[..<done]) + [UInt8](repeating: 0, count: count - done) }
      done += read
    }
    return bytes
  }
}
