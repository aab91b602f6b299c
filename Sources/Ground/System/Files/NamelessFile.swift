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
  /// Some file systems can't make a file without a name (NFS, some FUSE file systems). There it has one at first. A process that is killed in
  /// that moment leaves an empty file, which a later process removes.
  ///
  /// - Throws: `StorageError`, which names the directory.
  package static func open(in directory: String) throws -> Int32 {
    #if os(Linux)
      if NewFileName.abilities.namelessFiles {
        // O_TMPFILE, which Swift doesn't import: a flag of the kernel with O_DIRECTORY.
        let flags = 0o20_000_000 | O_DIRECTORY | O_RDWR | O_EXCL | O_CLOEXEC
        let nameless = opened(directory, flags)
        if nameless >= 0 { return nameless }
        // The answers of file systems and kernels that don't know the flag.
        guard [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) else { throw failure(directory) }
      }
    #endif
    return try openWithName(in: directory)
  }

  private static func opened(_ path: String, _ flags: Int32) -> Int32 {
    while true {
      let descriptor = Glibc.open(path, flags, 0o600)
      if descriptor >= 0 || errno != EINTR { return descriptor }
    }
  }

  private static func failure(_ directory: String) -> StorageError {
    .system(errno, "can't make a temporary file in the directory", directory)
  }

  // MARK: Where a file has a name at first

  private static let prefix = "touchstone-nameless-"
  private static let suffix = ".tmp"
  private static let digits = 16

  private static func openWithName(in directory: String) throws -> Int32 {
    removeLeftovers(in: directory)
    let number = String(UInt64.random(in: 0 ... .max), radix: 16)
    let name = prefix + String(repeating: "0", count: digits - number.count) + number + suffix
    let path = "\(directory)/\(name)"
    let descriptor = opened(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw failure(directory) }
    // Another process may have taken it for a leftover.
    guard unlink(path) == 0 || errno == ENOENT else {
      let failure = failure(directory)
      close(descriptor)
      throw failure
    }
    return descriptor
  }

  /// The directories that this process has looked through.
  private static let tidied = Lock<Set<String>>([])

  /// Removes the files that killed processes left, once for each directory. They are empty. One that another process has just made may be
  /// among them: it doesn't need the name any more.
  private static func removeLeftovers(in directory: String) {
    guard tidied.withLock({ $0.insert(directory).inserted }) else { return }
    // A directory may permit to make files and not to list them.
    for name in (try? FileTree.names(in: directory)) ?? [] where isOurs(name) {
      let path = "\(directory)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size == 0 else {
        continue
      }
      unlink(path)
    }
  }

  private static func isOurs(_ name: String) -> Bool {
    guard name.hasPrefix(prefix), name.hasSuffix(suffix) else { return false }
    let number = name.dropFirst(prefix.count).dropLast(suffix.count)
    return number.count == digits && number.allSatisfy { $0.isHexDigit }
  }
}
