import Foundation
import Storage
import TestTools

@testable import StorageLMDB

/// The pages of LMDB's lock file have blocks before they are written in memory: on a full disk, the write would end the process.
@Suite struct LockFileRoomTests {
  /// The bytes that a file system has allocated for a file.
  private func allocated(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_blocks) * 512 : -1
  }

  /// The bytes of the lock file that readers have written to: its header, and 64 bytes for each.
  private func used(_ readers: Int) -> Int { 256 + readers * 64 }

  @Test func slotsAreAllocatedBeforeTheyAreTaken() throws {
    try withTemporaryDirectory { directory in
      let path = directory + "/data.lmdb"
      let engine = try open(path)
      let lockFile = path + "-lock"
      expect(allocated(lockFile) >= used(16), "\(allocated(lockFile)) bytes")
      var snapshots: [any ReadTransaction] = []
      for count in [50, 100, 300] {
        while snapshots.count < count { snapshots.append(try engine.beginRead()) }
        expect(allocated(lockFile) >= used(count), "\(allocated(lockFile)) bytes for \(count) readers")
      }
      // The rest stays a hole.
      expect(allocated(lockFile) <= 3 * used(300), "\(allocated(lockFile)) bytes")
      for snapshot in snapshots { snapshot.end() }
      try engine.close()
      // A file that was made by others has holes.
      #expect(truncate(lockFile, 0) == 0)
      let again = try open(path)
      expect(allocated(lockFile) >= used(16), "\(allocated(lockFile)) bytes")
      try again.close()
    }
  }

  /// LMDB's locks on the file end with any descriptor of this process that is closed.
  @Test func locksOutliveAClosedEngine() throws {
    try withTemporaryDirectory { directory in
      let path = directory + "/data.lmdb"
      let closed = try open(path)
      try closed.close()
      // Closed at the end only, for the same reason.
      let probe = Glibc.open(path + "-lock", O_RDWR | O_CLOEXEC)
      defer { close(probe) }
      try expect(isLocked(probe), equals: false)
      let engine = try open(path)
      try expect(isLocked(probe), equals: true)
      let snapshot = try engine.beginRead()
      snapshot.end()
      withExtendedLifetime(consume closed) {}
      try expect(isLocked(probe), equals: true)
      try engine.close()
      try expect(isLocked(probe), equals: false)
    }
  }

  /// Whether a process has a lock of its own on a file. The lock that is asked for would be the descriptor's, so those of this process
  /// are in its way, too.
  private func isLocked(_ file: CInt) throws -> Bool {
    var lock = flock(
      l_type: Int16(F_WRLCK), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
    let getLockOfDescription: CInt = 36  // F_OFD_GETLK of <fcntl.h>
    #expect(fcntl(file, getLockOfDescription, &lock) == 0)
    return lock.l_type != Int16(F_UNLCK)
  }
}
