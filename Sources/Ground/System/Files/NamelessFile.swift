#if canImport(Glibc)
  import Glibc
#endif

/// Files without a name, for what doesn't fit into memory.
package enum NamelessFile {
  /// The directory for temporary files: that of the environment variable TMPDIR, or else `/var/tmp`, which is a disk also where `/tmp` is
  /// memory.
  package static var directory: String { EnvironmentVariable.value("TMPDIR") ?? "/var/tmp" }

  /// Opens a new file for reading and writing. Nobody else can open it, and it is gone with its descriptor, also when the process is
  /// killed.
  ///
  /// - Throws: `StorageError`, which names the directory.
  package static func open(in directory: String) throws -> Int32 {
    #if os(Linux)
      // O_TMPFILE, which Swift doesn't import: a flag of the kernel with O_DIRECTORY.
      let flags = 0o20_000_000 | O_DIRECTORY | O_RDWR | O_EXCL | O_CLOEXEC
      let nameless = Glibc.open(directory, flags, 0o600)
      if nameless >= 0 { return nameless }
      // The answers of file systems and kernels that don't know the flag.
      guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else { throw failure(directory) }
    #endif
    let path = "\(directory)/touchstone-\(UInt64.random(in: 0 ... .max)).tmp"
    let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw failure(directory) }
    unlink(path)
    return descriptor
  }

  private static func failure(_ directory: String) -> StorageError {
    .system(errno, "can't make a temporary file in the directory", directory)
  }
}
