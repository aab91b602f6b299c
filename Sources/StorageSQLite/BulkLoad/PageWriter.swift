import CCrypto
import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Numbers pages, in order behind those that a file has, and writes them many at a time, encrypted where the file is:
/// on threads of their own, while the next ones fill.
///
/// `@unchecked Sendable`: one thread fills; a buffer belongs to one thread at a time, and what several touch is under
/// the lock.
final class PageWriter: @unchecked Sendable {
  /// Pages of a buffer: few enough for a processor's cache.
  private static let bufferPages = 64
  private static let buffers = 4
  /// The page that has the byte at 1 GiB, where SQLite locks: nothing is ever in it.
  private static let lockPage = UInt32((1 << 30) / SQLiteLayout.pageBytes + 1)

  private final class Buffer {
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: PageWriter.bufferPages * SQLiteLayout.pageBytes, alignment: SQLiteLayout.pageBytes)
    var first: UInt32 = 0
    var pages = 0
    var cipher: PageCipher?

    deinit {
      if cipher != nil { csqlite_wipe(memory, PageWriter.bufferPages * SQLiteLayout.pageBytes) }
      memory.deallocate()
    }
  }

  private struct State {
    var empty: [Buffer] = []
    var made = 0
    var failure: (any Error)?
  }

  private let descriptor: Int32
  private let path: String
  private let keys: PageCipher.Keys?
  private let workers = Workers(maximum: 2)
  private let state = Lock(State())
  private let returned = CountingSemaphore()
  @exclusivity(unchecked) private var filling: Buffer?
  /// The number of the next page.
  @exclusivity(unchecked) private(set) var following: UInt32

  /// - Parameter pages: pages that the file has.
  init(_ descriptor: Int32, path: String, keys: PageCipher.Keys?, pages: UInt32) {
    self.descriptor = descriptor
    self.path = path
    self.keys = keys
    following = pages + 1
    skipLockPage()
  }

  private func skipLockPage() {
    if following == Self.lockPage { following += 1 }
  }

  /// A new page to be filled, before the next call of anything here.
  func next() throws -> (page: UnsafeMutableRawPointer, number: UInt32) {
    var buffer = filling
    if let full = buffer, full.pages == Self.bufferPages || full.first + UInt32(full.pages) != following {
      filling = nil
      hand(full)
      buffer = nil
    }
    let target = try buffer ?? empty()
    filling = target
    if target.pages == 0 { target.first = following }
    let number = following
    let page = target.memory + target.pages * SQLiteLayout.pageBytes
    target.pages += 1
    following += 1
    skipLockPage()
    return (page, number)
  }

  /// Fills and writes one page, which the file has.
  func write(at number: UInt32, _ fill: (UnsafeMutableRawPointer) -> Void) throws {
    let buffer = try empty()
    buffer.first = number
    buffer.pages = 1
    fill(buffer.memory)
    hand(buffer)
  }

  /// Reads one page that the file has, and decrypts it.
  func read(_ number: UInt32, into page: UnsafeMutableRawPointer) throws {
    let count = SQLiteLayout.pageBytes
    guard pread(descriptor, page, count, Int(number - 1) * count) == count else {
      throw SQLiteFile.systemError("reading a page", path)
    }
    if let keys, try !PageCipher(keys).decrypt(page, number: number, keys) {
      throw StorageError(.damaged, "page \(number) isn't what was written", path: path)
    }
  }

  /// Waits until all is written. Throws what writing has thrown.
  func finish() throws {
    if let buffer = filling {
      filling = nil
      hand(buffer)
    }
    let made = state.withLock { $0.made }
    for _ in 0..<made { returned.wait() }
    let failure = state.withLock { state in
      state.made = 0
      state.empty.removeAll()
      return state.failure
    }
    if let failure { throw failure }
  }

  // MARK: Buffers

  private func empty() throws -> Buffer {
    if let failure = state.withLock({ $0.failure }) { throw failure }
    let isNew = state.withLock { state in
      guard state.made < Self.buffers else { return false }
      state.made += 1
      return true
    }
    if isNew { return Buffer() }
    returned.wait()
    guard let buffer = state.withLock({ $0.empty.popLast() }) else {
      preconditionFailure("each signal stands for a buffer")
    }
    return buffer
  }

  private struct Handed: @unchecked Sendable {
    let buffer: Buffer
  }

  private func hand(_ buffer: Buffer) {
    let handed = Handed(buffer: buffer)
    workers.enqueue { [self] in
      do {
        if state.withLock({ $0.failure == nil }) { try write(handed.buffer) }
      } catch {
        state.withLock { if $0.failure == nil { $0.failure = error } }
      }
      handed.buffer.pages = 0
      state.withLock { $0.empty.append(handed.buffer) }
      returned.signal()
    }
  }

  private func write(_ buffer: Buffer) throws {
    if let keys { try encrypt(buffer, keys) }
    let bytes = UnsafeRawBufferPointer(
      start: buffer.memory, count: buffer.pages * SQLiteLayout.pageBytes)
    let offset = Int(buffer.first - 1) * SQLiteLayout.pageBytes
    guard FileWriting.writeAll(bytes, at: offset, to: descriptor) else {
      throw SQLiteFile.systemError("writing pages", path)
    }
    WriteBehind.note(descriptor, offset: offset, count: bytes.count)
  }

  private func encrypt(_ buffer: Buffer, _ keys: PageCipher.Keys) throws {
    let cipher = try buffer.cipher ?? PageCipher(keys)
    buffer.cipher = cipher
    try withUnsafeTemporaryAllocation(
      byteCount: buffer.pages * PageAuthentication.ivBytes, alignment: 16
    ) { ivs in
      guard RAND_bytes(ivs.baseAddress, Int32(ivs.count)) == 1, let iv = ivs.baseAddress else {
        throw StorageError(.engineFailure, "the random generator gave no bytes", path: path)
      }
      for index in 0..<buffer.pages {
        try cipher.encrypt(
          buffer.memory + index * SQLiteLayout.pageBytes, number: buffer.first + UInt32(index),
          iv: iv + index * PageAuthentication.ivBytes)
      }
    }
  }
}
