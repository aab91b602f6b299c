import CLMDB
import Glibc
import Storage
import Synchronization

/// Room on the disk for the pages of LMDB's lock file.
///
/// LMDB makes the file as a hole and writes to its pages in memory. If the disk has no room for such a page, the kernel ends the process
/// with SIGBUS. So the blocks are allocated before: those of the header and of the first slots of readers when the file is opened, others
/// before a snapshot takes a slot that lies further behind. Where a file system can't allocate blocks, it stays as it was.
///
/// LMDB's locks on the file belong to the process, and end when the process closes any descriptor of the file. This object has one. It is
/// closed after LMDB has closed the file, and before this process opens the file again. All calls may come from any thread.
final class LockFileRoom: Sendable {
  /// The header and a slot have 64 bytes in a line of the cache each, or a few of them.
  private static let (headerBytes, slotBytes) = (1_024, 64)
  /// The slots that are allocated when the file is opened. Twice as many each time that they don't suffice.
  private static let firstSlots = 32
  /// Other processes take slots too, between the look at the count and the use of the slot.
  private static let spareSlots = 16

  private let path: String
  /// The slots that have blocks.
  private let slots = Atomic<Int>(0)
  /// -1 when it is closed.
  private let descriptor: Lock<Int32>

  /// Allocates the first pages. Nil where this process can't write the file.
  ///
  /// - Throws: `diskFull`.
  init?(of database: String) throws {
    path = database + "-lock"
    descriptor = Lock(Glibc.open(path, O_RDWR | O_CLOEXEC))
    guard descriptor.withLock({ $0 >= 0 }) else { return nil }
    try grow(to: Self.firstSlots)
  }

  deinit { close() }

  func close() {
    descriptor.withLock { descriptor in
      if descriptor >= 0 { Glibc.close(descriptor) }
      descriptor = -1
    }
  }

  /// Makes sure that the next slot can be taken. LMDB takes the first free one, which is at most the one behind all that were
  /// used since the file was made.
  ///
  /// - Throws: `diskFull`.
  @inline(__always)
  func makeRoom(_ environment: OpaquePointer) throws {
    var info = MDB_envinfo()
    mdb_env_info(environment, &info)
    let needed = Int(info.me_numreaders) + Self.spareSlots
    if needed > slots.load(ordering: .relaxed) { try grow(to: needed) }
  }

  @inline(never)
  private func grow(to needed: Int) throws {
    try descriptor.withLock { descriptor in
      let known = slots.load(ordering: .relaxed)
      guard needed > known else { return }
      let count = max(needed, 2 * known)
      // A page needs all of its blocks, which may be smaller.
      let page = Int(sysconf(Int32(_SC_PAGESIZE)))
      let bytes = (Self.headerBytes + count * Self.slotBytes + page - 1) / page * page
      var status = stat()
      // Blocks are counted in units of 512 bytes. The pages are used in order, so as many blocks as bytes are those of the first bytes.
      if fstat(descriptor, &status) != 0 || Int(status.st_blocks) * 512 < bytes {
        var result: Int32
        // LMDB reads the number of slots from the size of the file, which stays.
        repeat { result = clmdb_allocate(descriptor, off_t(bytes)) } while result != 0 && errno == EINTR
        if result != 0, errno == ENOSPC || errno == EDQUOT {
          throw StorageError.lmdb(ENOSPC, "there is no room for the lock file", path: path)
        }
      }
      slots.store(count, ordering: .relaxed)
    }
  }
}
