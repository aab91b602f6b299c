// LMDB's file, as its version 0.9 writes it on a 64-bit little-endian machine: pages of one size, the first
// two of which are meta pages written in turn.
//
// page    := number:u64 pad:u16 flags:u16 (lower:u16 upper:u16 | overflowPages:u32) ...     16 bytes of
// header
//   meta    := header magic:u32=0xBEEFC0DE version:u32=1 address:u64 mapBytes:u64
//              free:tree main:tree lastPage:u64 transaction:u64
// tree    := pad:u32 flags:u16 depth:u16 branchPages:u64 leafPages:u64 overflowPages:u64 entries:u64 root:u64
//              (`pad` of `free` is the page size; `root` is all ones in an empty tree)
// branch  := header offset:u16... node...      node := page:u48 keyBytes:u16 key   (the first node has no
// key)
// leaf    := header offset:u16... node...      node := bytes:u32 flags:u16 keyBytes:u16 key (value |
// page:u64)
//
// The flags of a leaf node say whether its value is on overflow pages (1) or is a tree (2). Everything is
// read with `pread`, so a damaged file can't crash the reader.

import Glibc
import Storage

package enum PageFlags {
  package static let branch: UInt16 = 0x01
  package static let leaf: UInt16 = 0x02
  package static let overflow: UInt16 = 0x04
  package static let meta: UInt16 = 0x08
}

package enum NodeFlags {
  package static let overflow: UInt16 = 0x01
  static let tree: UInt16 = 0x02
}

/// The record of a B-tree.
struct TreeRecord {
  static let size = 48
  let pad: UInt32
  let flags: UInt16
  let depth: UInt16
  let branchPages: UInt64
  let leafPages: UInt64
  let overflowPages: UInt64
  let entries: UInt64
  let root: UInt64

  init(_ bytes: UnsafeRawBufferPointer) {
    pad = bytes.loadUnaligned(as: UInt32.self)
    flags = bytes.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
    depth = bytes.loadUnaligned(fromByteOffset: 6, as: UInt16.self)
    branchPages = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    leafPages = bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
    overflowPages = bytes.loadUnaligned(fromByteOffset: 24, as: UInt64.self)
    entries = bytes.loadUnaligned(fromByteOffset: 32, as: UInt64.self)
    root = bytes.loadUnaligned(fromByteOffset: 40, as: UInt64.self)
  }

  var isEmpty: Bool { root == .max }
}

enum TreeFlags {
  static let integerKeys: UInt16 = 0x08
  /// A flag of the environment that LMDB stores in the free list's record.
  static let noSubdirectory: UInt16 = 0x4000
}

package struct MetaPage {
  package static let size = 152
  static let lastPageOffset = 136
  static let magic: UInt32 = 0xBEEF_C0DE
  static let version: UInt32 = 1
  /// A limit that no file reaches: it allows 17,000 transactions a second for 500 years.
  static let maximumTransaction: UInt64 = 1 << 48
  /// The maximum number of pages that a transaction may take, free again, and so leave unwritten at the end
  /// of a file: the number of pages in the map.
  static let maximumUnwritten: UInt64 = 1 << 28

  let free: TreeRecord
  let main: TreeRecord
  let lastPage: UInt64
  let transaction: UInt64
  var pageBytes: Int { Int(free.pad) }

  /// Reads a meta page. Throws `notADatabase`, `unsupportedVersion` or `damaged`.
  init(_ bytes: UnsafeRawBufferPointer, path: String) throws {
    guard bytes.count >= Self.size, bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self) == Self.magic,
      bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self) & PageFlags.meta != 0
    else { throw StorageError(.notADatabase, "this isn't an LMDB file", path: path) }
    let version = bytes.loadUnaligned(fromByteOffset: 20, as: UInt32.self)
    guard version == Self.version else {
      throw StorageError(
        .unsupportedVersion,
        "the file has LMDB's data version \(version); this release reads version \(Self.version)", path: path)
    }
    free = TreeRecord(UnsafeRawBufferPointer(rebasing: bytes[40..<88]))
    main = TreeRecord(UnsafeRawBufferPointer(rebasing: bytes[88..<136]))
    lastPage = bytes.loadUnaligned(fromByteOffset: Self.lastPageOffset, as: UInt64.self)
    transaction = bytes.loadUnaligned(fromByteOffset: 144, as: UInt64.self)
    guard (512...65_536).contains(pageBytes), pageBytes & (pageBytes - 1) == 0, lastPage >= 1,
      lastPage < (1 << 47) / UInt64(pageBytes)
    else {
      throw StorageError(
        .damaged,
        "a meta page is damaged: it says a page has \(pageBytes) bytes and the last page is \(lastPage)",
        path: path)
    }
    guard transaction < Self.maximumTransaction else {
      throw StorageError(
        .damaged, "a meta page is damaged: it has the impossible transaction number \(transaction)",
        path: path)
    }
  }
}

/// The result of reading the start of a file.
enum FileHeader {
  case empty
  case lmdb

  /// Reads both meta pages, as LMDB does when it opens a file. Throws what `MetaPage` throws.
  static func inspect(_ path: String) throws -> FileHeader {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw StorageError.lmdb(errno, "the database could not be opened", path: path)
    }
    defer { close(descriptor) }
    return try withUnsafeTemporaryAllocation(byteCount: MetaPage.size, alignment: 8) { bytes in
      func read(_ offset: Int) throws -> UnsafeRawBufferPointer {
        let count = readAgain(
          descriptor, UnsafeMutableRawBufferPointer(rebasing: bytes[..<MetaPage.size]), offset)
        guard count >= 0 else { throw StorageError.lmdb(errno, "the file could not be read", path: path) }
        return UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[..<count])
      }
      let header = try read(0)
      if header.count == 0 { return .empty }
      let first = try MetaPage(header, path: path)
      let second: MetaPage
      do {
        second = try MetaPage(try read(first.pageBytes), path: path)
      } catch let error as StorageError where error.code == .notADatabase {
        throw StorageError(.damaged, "the second meta page is missing or damaged", path: path)
      }
      guard second.pageBytes == first.pageBytes else {
        throw StorageError(.damaged, "the two meta pages have different page sizes", path: path)
      }
      // LMDB writes a transaction to the meta page of its number's last bit, and looks for it there. A new
      // file has two pages of transaction 0.
      guard first.transaction & 1 == 0, second.transaction & 1 == 1 || second.transaction == 0 else {
        throw StorageError(
          .damaged,
          "a meta page is damaged: transactions \(first.transaction) and \(second.transaction) are on the "
            + "wrong pages", path: path)
      }
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_size >= 2 * first.pageBytes else {
        throw StorageError(.damaged, "the file is cut off: it ends inside its meta pages", path: path)
      }
      let newest = first.transaction > second.transaction ? first : second
      guard newest.lastPage < UInt64(status.st_size / first.pageBytes) + MetaPage.maximumUnwritten else {
        throw StorageError(
          .damaged, "the file is damaged or cut off: its last page should be \(newest.lastPage)", path: path
        )
      }
      return .lmdb
    }
  }
}

/// The pages of a file, read without LMDB and without a map.
package final class PageFile {
  let path: String
  let pageBytes: Int
  /// The number of whole pages in the file.
  let pages: UInt64
  /// The number of page reads, for tests.
  private(set) var reads = 0
  /// The number of the first error with which the system has refused to read a page.
  private(set) var readFailure: Int32?
  private let descriptor: Int32

  convenience init(path: String) throws {
    try self.init(descriptor: open(path, O_RDONLY | O_CLOEXEC), path: path)
  }

  /// Takes over an open descriptor, which `deinit` closes. Throws by `errno` if the descriptor is invalid.
  init(descriptor: Int32, path: String) throws {
    guard descriptor >= 0 else { throw StorageError.lmdb(errno, "the file could not be read", path: path) }
    do {
      var status = stat()
      guard fstat(descriptor, &status) == 0 else {
        throw StorageError.lmdb(errno, "the file could not be read", path: path)
      }
      var bytes = [UInt8](repeating: 0, count: MetaPage.size)
      let count = bytes.withUnsafeMutableBytes { readAgain(descriptor, $0, 0) }
      guard count >= 0 else { throw StorageError.lmdb(errno, "the file could not be read", path: path) }
      guard count == MetaPage.size else { throw StorageError(.damaged, "the file is cut off", path: path) }
      let meta = try bytes.withUnsafeBytes { try MetaPage($0, path: path) }
      self.path = path
      self.descriptor = descriptor
      pageBytes = meta.pageBytes
      pages = UInt64(status.st_size) / UInt64(meta.pageBytes)
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Reads a page. Returns false if the file has no such page or the system can't read it (`readFailure`).
  func read(_ page: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Bool {
    let count = count(page, into: bytes)
    if count < 0, readFailure == nil { readFailure = errno }
    return count == pageBytes
  }

  /// Reads a page. Returns the number of bytes read, or -1 if the system can't read it (`errno`).
  private func count(_ page: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Int {
    guard page < pages else { return 0 }
    reads += 1
    let place = UnsafeMutableRawBufferPointer(rebasing: bytes[..<pageBytes])
    return readAgain(descriptor, place, Int(page) * pageBytes)
  }

  /// The maximum number of snapshots to take until a meta page can be read.
  private static let attempts = 1_000

  /// Calls `body`, which takes a snapshot and reads its meta page with `meta`. Calls it again while that
  /// throws `busy`: other processes may commit twice in between and overwrite the meta page.
  package static func withPinnedMeta<Result>(_ body: () throws -> Result) throws -> Result {
    for _ in 1..<attempts {
      do { return try body() } catch let error as StorageError where error.code == .busy {}
    }
    return try body()
  }

  /// Returns the meta page of a transaction that a snapshot pins. The second commit after it overwrites the
  /// page, so call this right after taking the snapshot. Throws `busy` if the page is gone
  /// (`withPinnedMeta`).
  func meta(of transaction: UInt64) throws -> MetaPage {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    let count = count(transaction & 1, into: bytes)
    if count < 0 { throw StorageError.lmdb(errno, "the file could not be read", path: path) }
    if count == pageBytes {
      let meta = try MetaPage(UnsafeRawBufferPointer(bytes), path: path)
      if meta.transaction == transaction { return meta }
    }
    throw StorageError(.busy, "other writers changed the file during the check; check again", path: path)
  }
}

/// Fills `bytes` from the file. Repeats reads that a signal interrupts or that return less. Returns the number of bytes
/// read, or -1 with `errno`.
func readAgain(_ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, _ offset: Int) -> Int {
  var count = 0
  while count < bytes.count {
    let result = pread(
      descriptor, bytes.baseAddress.unsafelyUnwrapped + count, bytes.count - count, off_t(offset + count))
    if result < 0, errno == EINTR { continue }
    if result < 0 { return -1 }
    if result == 0 { break }
    count += result
  }
  return count
}

extension MetaPage {
  /// Writes the meta page of the last commit once more, with the same bytes.
  ///
  /// At durability `normal` a meta page reaches the disk with the sync of the next commit. If that sync fails, the system
  /// counts the page as written and never writes it again. Later syncs succeed, and the next commit's meta page replaces
  /// the one before. After a power loss the newest meta page would be two commits old, and its pages overwritten. The next
  /// commit's sync covers this write. Call it inside the write transaction.
  static func writeAgain(_ transaction: Int, _ descriptor: Int32, _ path: String) throws {
    func failed(_ number: Int32) -> StorageError {
      .lmdb(number, "the last commit's meta page could not be written again", path: path)
    }
    guard transaction > 0 else { return }
    try withUnsafeTemporaryAllocation(byteCount: MetaPage.size, alignment: 8) { bytes in
      guard readAgain(descriptor, bytes, 0) == MetaPage.size else { throw failed(errno) }
      let offset =
        transaction & 1 == 0 ? 0 : try MetaPage(UnsafeRawBufferPointer(bytes), path: path).pageBytes
      guard readAgain(descriptor, bytes, offset) == MetaPage.size else { throw failed(errno) }
      guard try MetaPage(UnsafeRawBufferPointer(bytes), path: path).transaction == UInt64(transaction) else {
        throw StorageError(
          .damaged, "the meta page of transaction \(transaction) isn't in its place", path: path)
      }
      var written = -1
      repeat {
        written = pwrite(descriptor, bytes.baseAddress, MetaPage.size, off_t(offset))
      } while written < 0 && errno == EINTR
      guard written == MetaPage.size else { throw failed(written < 0 ? errno : EIO) }
    }
  }
}
