import FoundationEssentials
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The files of a directory in the kernel's page cache. Measures and changes how much of them is cached.
///
/// It holds descriptors of the files until it is released. Make it before a database of the same process
/// opens the files, and release it after the database closes them. Closing any descriptor of a file drops all
/// `fcntl` locks that the process has on it.
final class FileResidency {
  private struct File {
    let descriptor: Int32
    let address: UnsafeMutableRawPointer
    let count: Int
  }
  private var files: [File] = []

  /// Opens all files in `directory` and its subdirectories, except empty ones. Dirty pages are written first,
  /// because the kernel always keeps them.
  init(_ directory: String) throws {
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
      let path = "\(directory)/\(name)"
      var status = stat()
      guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size > 0 else { continue }
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { throw FileResidency.failure("open", path) }
      guard fdatasync(descriptor) == 0 else {
        defer { close(descriptor) }
        throw FileResidency.failure("fdatasync", path)
      }
      // The mapping isn't read: `mincore` needs addresses.
      let address = mmap(nil, Int(status.st_size), PROT_READ, MAP_SHARED, descriptor, 0)
      guard let address, address != MAP_FAILED else {
        defer { close(descriptor) }
        throw FileResidency.failure("mmap", path)
      }
      files.append(File(descriptor: descriptor, address: address, count: Int(status.st_size)))
    }
  }

  deinit {
    for file in files {
      munmap(file.address, file.count)
      close(file.descriptor)
    }
  }

  /// The total size of the files, in bytes.
  var byteCount: Int { files.reduce(0) { $0 + $1.count } }

  /// Asks the kernel to drop the files from its page cache (`POSIX_FADV_DONTNEED`). Pages that a process has
  /// mapped stay, and so do the files of in-memory file systems. `residentShare` shows the result.
  func drop() {
    // A page that was being moved to one of the kernel's lists is dropped only by the next call.
    for _ in 0..<3 {
      for file in files { posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED) }
      if residentShare == 0 { return }
    }
  }

  /// Reads all files, so that they are in the page cache as far as there is room.
  func fill() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
    defer { buffer.deallocate() }
    for file in files {
      var offset = 0
      while offset < file.count {
        let read = pread(file.descriptor, buffer.baseAddress, buffer.count, offset)
        if read <= 0 { break }
        offset += read
      }
    }
  }

  /// The share of the files' pages in the page cache, from 0 to 1, by `mincore`; 1 if the kernel doesn't
  /// report it. Holes don't count: they have no pages on a disk, and are never resident in an in-memory file
  /// system.
  var residentShare: Double {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    var resident = 0
    var total = 0
    for file in files {
      var states = [UInt8](repeating: 0, count: (file.count + page - 1) / page)
      let isTold = mincore(file.address, file.count, &states) == 0
      for range in FileResidency.data(of: file) {
        let pages = range.lowerBound / page..<(range.upperBound + page - 1) / page
        total += pages.count
        resident += isTold ? states[pages].count { $0 & 1 != 0 } : pages.count
      }
    }
    return total == 0 ? 0 : Double(resident) / Double(total)
  }

  /// Linux's constants for `lseek`. The C library defines them only with extensions.
  private static let (seekData, seekHole): (Int32, Int32) = (3, 4)

  /// The ranges of a file that aren't holes; the whole file if the file system doesn't report holes.
  private static func data(of file: File) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var position = 0
    while position < file.count {
      let start = Int(lseek(file.descriptor, off_t(position), seekData))
      if start < 0 {
        // ENXIO: the rest is a hole.
        if errno != ENXIO { ranges.append(position..<file.count) }
        break
      }
      guard start < file.count else { break }
      let end = Int(lseek(file.descriptor, off_t(start), seekHole))
      position = end > start ? min(end, file.count) : file.count
      ranges.append(start..<position)
    }
    return ranges
  }

  private static func failure(_ call: String, _ path: String) -> StorageError {
    StorageError(.ioError, "\(call): \(String(cString: strerror(errno)))", path: path)
  }
}
