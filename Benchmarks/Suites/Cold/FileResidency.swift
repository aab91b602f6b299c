import Foundation
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The files of a directory as the kernel's page cache has them: how much of them lies there, and how to change that.
///
/// It holds descriptors of the files until it goes. It has to be made before a database of the same process opens them
/// and to go after that closes them: closing any descriptor of a file ends all of the process's `fcntl` locks on it.
final class FileResidency {
  private struct File {
    let descriptor: Int32
    let address: UnsafeMutableRawPointer
    let count: Int
  }
  private var files: [File] = []

  /// All files of `directory` and below, empty ones left out. What is still to be written to them is written first:
  /// the kernel keeps such pages whatever it is told.
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
      // Nothing is read through it: `mincore` asks about addresses.
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

  /// Bytes of all files.
  var byteCount: Int { files.reduce(0) { $0 + $1.count } }

  /// Asks the kernel to drop the files from its page cache (`POSIX_FADV_DONTNEED`). It does what it can: pages that a
  /// process has mapped stay, and file systems that live in memory have nowhere else to keep them. `residentShare` says
  /// what came of it.
  func drop() {
    // A page that was on its way into a list of the kernel's is dropped the second time.
    for _ in 0..<3 {
      for file in files { posix_fadvise(file.descriptor, 0, 0, POSIX_FADV_DONTNEED) }
      if residentShare == 0 { return }
    }
  }

  /// Reads all files, so that they lie in the page cache as far as there is room.
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

  /// The share of the files' pages that the page cache has now, from 0 to 1, as `mincore` tells; 1 where it doesn't.
  /// Holes have no pages: a file system in memory would never have them there, another one has nothing to fetch.
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

  /// Linux's numbers for `lseek`, which the C library shows with extensions only.
  private static let (seekData, seekHole): (Int32, Int32) = (3, 4)

  /// Where a file isn't a hole. All of it where the file system doesn't say.
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
