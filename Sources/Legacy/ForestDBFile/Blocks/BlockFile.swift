import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The last byte of a block: what the block is.
enum BlockMarker {
  static let document: UInt8 = 0xDD
  static let header: UInt8 = 0xEE
  static let node: UInt8 = 0xFF
  static let superblock: UInt8 = 0xCC
  /// These, and that of nodes which have none.
  static let all: [UInt8] = [document, header, node, superblock, 0]
}

/// Reads the blocks of a file, decrypted, through a cache of a fixed size. The file is read, never mapped: a file
/// that another process cuts off is an error, not a crash. One thread at a time.
final class BlockFile {
  static let blockBytes = 4_096
  /// The maximum number of cached blocks, 8 MiB.
  private static let maximumSlots = 1 << 11
  /// The maximum number of blocks that are read at once. The number doubles while blocks are asked for in order: a
  /// record that goes on in the next block isn't yet a reason to read many.
  private static let maximumRun = 32

  let path: String
  /// The number of whole blocks. A part of a block at the end isn't read.
  let count: Int
  /// The number of bytes behind the last whole block.
  let restBytes: Int
  private let descriptor: Int32
  private let cipher: BlockCipher?
  /// The number of cached blocks, a power of two. A block has one place in the cache.
  private let slots: Int
  private let memory: UnsafeMutableRawPointer
  private let numbers: UnsafeMutablePointer<Int>
  private var lastLoaded = -2
  private var run = 1

  /// Opens a file. Throws `notFound` and `truncated` (empty), and errors of the system.
  convenience init(_ path: String, key: SecretBytes?) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { throw ForestDBError(.notFound, "the file doesn't exist", path: path) }
      throw StorageError.system(errno, "can't open", path)
    }
    try self.init(descriptor: descriptor, path: path, key: key)
  }

  /// Takes over a descriptor.
  init(descriptor: Int32, path: String, key: SecretBytes?) throws {
    self.path = path
    self.descriptor = descriptor
    var status = stat()
    let code = fstat(descriptor, &status)
    count = code == 0 ? Int(status.st_size) / Self.blockBytes : 0
    restBytes = code == 0 ? Int(status.st_size) % Self.blockBytes : 0
    var slots = 1
    while slots < min(count, Self.maximumSlots) { slots *= 2 }
    self.slots = slots
    memory = .allocate(byteCount: slots * Self.blockBytes, alignment: Self.blockBytes)
    numbers = .allocate(capacity: slots)
    numbers.initialize(repeating: -1, count: slots)
    cipher = try key.map { try BlockCipher($0) }
    guard code == 0 else { throw StorageError.system(errno, "can't read", path) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw ForestDBError(.foreign, "this isn't a file", path: path)
    }
    guard count > 0 else {
      throw ForestDBError(
        .truncated, "the file has \(status.st_size) bytes, less than a block of \(Self.blockBytes)",
        path: path)
    }
  }

  deinit {
    memory.deallocate()
    numbers.deallocate()
    close(descriptor)
  }

  /// The number of bytes in whole blocks.
  var byteCount: UInt64 { UInt64(count) * UInt64(Self.blockBytes) }

  /// Returns the bytes of a block, valid until the next call. Throws `damaged` if the file has no such block.
  @inline(__always)
  func block(_ number: Int) throws -> UnsafeRawPointer {
    let slot = number & (slots - 1)
    if numbers[slot] == number, number >= 0 {
      return UnsafeRawPointer(memory + slot * Self.blockBytes)
    }
    return try load(number)
  }

  private func load(_ number: Int) throws -> UnsafeRawPointer {
    guard number >= 0, number < count else {
      throw ForestDBError(
        .damaged, "something refers to block \(number), but the file has \(count) blocks", path: path)
    }
    let slot = number & (slots - 1)
    run = number == lastLoaded + 1 ? min(run * 2, Self.maximumRun) : 1
    let blocks = min(run, count - number, slots - slot)
    let start = memory + slot * Self.blockBytes
    for index in slot..<(slot + blocks) { numbers[index] = -1 }
    try read(blocks * Self.blockBytes, at: number * Self.blockBytes, into: start)
    for index in 0..<blocks {
      if let cipher { try cipher.decrypt(start + index * Self.blockBytes, number: number + index) }
      numbers[slot + index] = number + index
    }
    lastLoaded = number + blocks - 1
    return UnsafeRawPointer(start)
  }

  private func read(_ wanted: Int, at offset: Int, into target: UnsafeMutableRawPointer) throws {
    var done = 0
    while done < wanted {
      let count = pread(descriptor, target + done, wanted - done, off_t(offset + done))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError.system(errno, "can't read", path) }
      guard count > 0 else {
        throw ForestDBError(
          .truncated, "the file became shorter while it was read", path: path, offset: UInt64(offset + done))
      }
      done += count
    }
  }

  /// Returns the marker of a block.
  func marker(_ number: Int) throws -> UInt8 {
    try block(number).load(fromByteOffset: Self.blockBytes - 1, as: UInt8.self)
  }
}

extension UnsafeRawPointer {
  /// Reads an integer, its highest byte first. The caller knows that it is inside.
  @inline(__always)
  func integer<Value: FixedWidthInteger>(_ offset: Int, as type: Value.Type = Value.self) -> Value {
    Value(bigEndian: loadUnaligned(fromByteOffset: offset, as: Value.self))
  }
}
