import Bytes
import Encryption
import Fleece
import Storage
import System

#if canImport(Glibc)
  import Glibc
#endif

//   file  := block*             a block of `blockBytes` bytes, sealed (BlockSealer), one after the other
//   bytes := row*               of all blocks (RowCoding); rows go on from one block to the next

/// Rows in a temporary file. They are appended, and read from any place where one begins. One thread uses it.
///
/// The last bytes are in memory until they fill a block, so each block is written once.
final class RowFile {
  /// The number of values of a row.
  let width: Int
  fileprivate let files: TemporaryFiles
  fileprivate let budget: QueryMemoryBudget
  private let descriptor: Int32
  private let sealer: BlockSealer
  private var tail: ByteBuffer
  private var row = ByteBuffer(capacity: 256)
  private var blocks = 0
  /// The size of the largest row, in bytes.
  private(set) var largestRow = 0
  private let sealed: UnsafeMutableRawBufferPointer
  private var sealedBytes: Int { files.blockBytes + BlockSealer.overhead }

  /// Makes an empty file.
  init(width: Int, _ files: TemporaryFiles, _ budget: QueryMemoryBudget) throws {
    self.width = width
    self.files = files
    self.budget = budget
    descriptor = try NamelessFile.open(in: files.directory)
    do { sealer = try BlockSealer() } catch {
      close(descriptor)
      throw error
    }
    tail = ByteBuffer(capacity: files.blockBytes)
    sealed = .allocate(byteCount: files.blockBytes + BlockSealer.overhead, alignment: 16)
    budget.take(2 * files.blockBytes)
  }

  deinit {
    close(descriptor)
    sealed.deallocate()
    files.giveBack(blocks * sealedBytes)
    budget.giveBack(2 * files.blockBytes)
  }

  /// Where the next row begins: the number of bytes of all rows so far.
  var end: Int { blocks * files.blockBytes + tail.count }

  // MARK: Writing

  /// Appends a row of `width` values.
  func append(_ values: UnsafePointer<QueryValue>, _ sharedKeys: SharedKeys) throws {
    for index in 0..<width { RowCoding.append(values[index], to: &row, sharedKeys) }
    tail.append(varint: UInt64(row.count))
    tail.append(row.bytes)
    largestRow = max(largestRow, row.count)
    row.removeAll(keepingAtMost: files.blockBytes)
    if tail.count >= files.blockBytes { try writeBlocks() }
  }

  private func writeBlocks() throws {
    var offset = 0
    while tail.count - offset >= files.blockBytes {
      let plain = UnsafeRawBufferPointer(rebasing: tail.bytes[offset..<(offset + files.blockBytes)])
      try sealer.seal(UInt64(blocks), plain, into: sealed.baseAddress.unsafelyUnwrapped)
      try files.take(sealedBytes)
      try writeSealed(at: blocks * sealedBytes)
      blocks += 1
      offset += files.blockBytes
    }
    let rest = tail.count - offset
    guard tail.capacity <= 4 * files.blockBytes else {
      // After a large row.
      var short = ByteBuffer(capacity: files.blockBytes)
      short.append(UnsafeRawBufferPointer(rebasing: tail.bytes[offset...]))
      tail = short
      return
    }
    memmove(tail.base, tail.base + offset, rest)
    tail.truncate(to: rest)
  }

  private func writeSealed(at place: Int) throws {
    var done = 0
    while done < sealed.count {
      let written = pwrite(
        descriptor, sealed.baseAddress.unsafelyUnwrapped + done, sealed.count - done, place + done)
      if written < 0, errno == EINTR { continue }
      guard written > 0 else {
        let number = written < 0 ? errno : ENOSPC
        files.giveBack(sealedBytes)
        throw files.failure(number, "write")
      }
      done += written
    }
  }

  // MARK: Reading

  /// Appends the bytes from the begin of a block to its end, or to the end of all rows. False if there are none.
  fileprivate func read(block: Int, into bytes: inout ByteBuffer) throws -> Bool {
    guard block < blocks else {
      guard block == blocks, tail.count > 0 else { return false }
      bytes.append(tail.bytes)
      return true
    }
    var done = 0
    while done < sealed.count {
      let count = pread(
        descriptor, sealed.baseAddress.unsafelyUnwrapped + done, sealed.count - done,
        block * sealedBytes + done)
      if count < 0, errno == EINTR { continue }
      if count == 0 { throw files.damaged }
      guard count > 0 else { throw files.failure(errno, "read") }
      done += count
    }
    let target = bytes.appendUninitialized(files.blockBytes)
    guard sealer.open(UInt64(block), UnsafeRawBufferPointer(sealed), into: target) else {
      throw files.damaged
    }
    return true
  }

  /// What a reader may take, in bytes. Its buffer doubles, and has the block before the row and the one behind.
  var readerBytes: Int {
    largestRow <= files.blockBytes ? files.blockBytes : 2 * (largestRow + 2 * files.blockBytes)
  }

  /// The rows from one place to another. No row may be appended while they are read.
  func rows(_ places: Range<Int>) -> RowReader { RowReader(self, places) }
}

/// Reads rows of a file one after the other. One thread uses it.
final class RowReader {
  private let file: RowFile
  private let end: Int
  /// The bytes from `start` of the file on.
  private var bytes: ByteBuffer
  private var start: Int
  /// Where the next row begins, among `bytes`.
  private var offset = 0
  private let arena: EvaluationArena
  private let values: UnsafeMutablePointer<QueryValue>
  private var counted = 0

  fileprivate init(_ file: RowFile, _ places: Range<Int>) {
    self.file = file
    end = places.upperBound
    // From the begin of a block.
    offset = places.lowerBound % file.files.blockBytes
    start = places.lowerBound - offset
    bytes = ByteBuffer(capacity: file.files.blockBytes)
    arena = EvaluationArena(capacity: 256, file.budget)
    values = .allocate(file.width, repeating: .missing)
    count()
  }

  deinit {
    values.deallocate()
    file.budget.giveBack(counted)
  }

  private func count() {
    guard bytes.capacity != counted else { return }
    file.budget.take(bytes.capacity - counted)
    counted = bytes.capacity
  }

  /// Gives back what a large row has taken.
  private func shorten() {
    guard bytes.capacity > 4 * file.files.blockBytes, bytes.count - offset <= file.files.blockBytes else {
      return
    }
    let done = min(offset, bytes.count) / file.files.blockBytes * file.files.blockBytes
    var short = ByteBuffer(capacity: 2 * file.files.blockBytes)
    short.append(UnsafeRawBufferPointer(rebasing: bytes.bytes[done...]))
    bytes = short
    start += done
    offset -= done
    count()
  }

  /// Where the next row begins in the file.
  var place: Int { start + offset }

  /// The next row, or nil after the last. It is valid until the next call.
  ///
  /// - Throws: `memoryLimit` or `memoryBusy` for a row that is too large, or `StorageError` of the file.
  func next() throws -> UnsafeMutablePointer<QueryValue>? {
    guard place < end else { return nil }
    arena.reset()
    shorten()
    try need(min(Varint.maximumBytes, end - place))
    guard let length = bytes.bytes.varint(at: &offset), length <= UInt64(end - place) else {
      throw file.files.damaged
    }
    try need(Int(length))
    let row = UnsafeRawBufferPointer(rebasing: bytes.bytes[offset..<(offset + Int(length))])
    offset += Int(length)
    var position = 0
    for index in 0..<file.width {
      guard let value = RowCoding.value(row, at: &position, arena) else { throw file.files.damaged }
      values[index] = value
    }
    guard position == row.count else { throw file.files.damaged }
    try file.budget.check(.spilledRow)
    return values
  }

  /// Reads until so many bytes from `offset` on are there.
  private func need(_ wanted: Int) throws {
    guard bytes.count - offset < wanted else { return }
    let block = file.files.blockBytes
    // Whole blocks before the row go. `start` stays at the begin of a block.
    let done = min(offset, bytes.count) / block * block
    if done > 0 {
      let rest = bytes.count - done
      memmove(bytes.base, bytes.base + done, rest)
      bytes.truncate(to: rest)
      start += done
      offset -= done
    }
    while bytes.count - offset < wanted {
      guard try file.read(block: (start + bytes.count) / block, into: &bytes) else {
        throw file.files.damaged
      }
    }
    count()
  }
}
