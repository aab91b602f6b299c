import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A file that an engine maps into memory (LMDB). Every page that was ever read counts as memory of the
/// process, although the system can take it back at any time.
package enum MappedFile {
  /// Returns the file's pages to the system's cache if more than `limit` bytes of files are resident. The
  /// next access maps a page again without reading the disk. Pointers into the map stay valid. For long runs
  /// over many pages.
  package static func release(_ path: String, above limit: Int) {
    // statm: size, resident, and of that shared with files, in pages.
    guard let statistics = text(of: "/proc/self/statm"),
      let shared = statistics.split(separator: " ").dropFirst(2).first.flatMap({ Int($0) }),
      shared * sysconf(Int32(_SC_PAGESIZE)) > limit,
      let maps = text(of: "/proc/self/maps")
    else { return }
    // maps: start-end permissions offset device inode path
    for line in maps.split(separator: "\n") where line.hasSuffix(path) {
      let bounds = line.prefix { $0 != " " }.split(separator: "-").map { UInt($0, radix: 16) }
      guard bounds.count == 2, let start = bounds[0], let end = bounds[1], start < end else { continue }
      madvise(UnsafeMutableRawPointer(bitPattern: start), Int(end - start), MADV_DONTNEED)
    }
  }

  private static func text(of path: String) -> String? {
    (try? AtomicFile.read(path, limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
  }
}
