import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Memory that grows: the process's own while it is small, then the pages of a file without a name.
final class ScratchMemory {
  private(set) var base: UnsafeMutableRawPointer
  private(set) var byteCount: Int
  private let directory: String
  private let limit: Int
  private var file: Int32 = -1

  /// Memory of `byteCount` zero bytes. Above `limit` bytes it lies in a file in `directory`.
  init(_ byteCount: Int, directory: String, limit: Int = 4 << 20) {
    self.byteCount = byteCount
    self.directory = directory
    self.limit = limit
    base = .allocate(byteCount: byteCount, alignment: 64)
    base.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
  }

  deinit { release() }

  private func release() {
    if file >= 0 {
      munmap(base, byteCount)
      close(file)
    } else {
      base.deallocate()
    }
  }

  /// Grows to `wanted` bytes. What is new is zero.
  func grow(to wanted: Int) throws {
    guard wanted > byteCount else { return }
    guard wanted > limit else {
      let larger = UnsafeMutableRawPointer.allocate(byteCount: wanted, alignment: 64)
      larger.copyMemory(from: base, byteCount: byteCount)
      (larger + byteCount).initializeMemory(as: UInt8.self, repeating: 0, count: wanted - byteCount)
      base.deallocate()
      (base, byteCount) = (larger, wanted)
      return
    }
    let target = file >= 0 ? file : try makeFile()
    // Room that isn't there has to be an error here, not a signal where the memory is written.
    let code = posix_fallocate(target, 0, off_t(wanted))
    let mapped =
      code == 0 ? mmap(nil, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, target, 0) : MAP_FAILED
    guard code == 0, let mapped, mapped != MAP_FAILED else {
      let number = code == 0 ? errno : code
      if file < 0 { close(target) }
      throw StorageError.system(number, "can't grow a temporary file", directory)
    }
    if file < 0 { mapped.copyMemory(from: base, byteCount: byteCount) }
    if file >= 0 { munmap(base, byteCount) } else { base.deallocate() }
    file = target
    (base, byteCount) = (mapped, wanted)
  }

  private func makeFile() throws -> Int32 {
    var template = Array("\(directory)/log-XXXXXX".utf8CString)
    let made = mkstemp(&template)
    guard made >= 0, fcntl(made, F_SETFD, FD_CLOEXEC) == 0 else {
      throw StorageError.system(errno, "can't make a temporary file", directory)
    }
    unlink(template)
    return made
  }
}
