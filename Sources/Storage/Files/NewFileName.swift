import CFileSystem

#if canImport(Glibc)
  import Glibc
#endif

/// Gives a file that is whole a name that nothing has: who comes second finds the first one's file, untouched.
package enum NewFileName {
  /// What the file system is able to do. Set by tests alone, to take the ways that others leave.
  package struct Abilities: Sendable {
    package var hardLinks = true
    package var exclusiveRenames = true
    package init() {}
  }

  @TaskLocal package static var abilities = Abilities()

  /// Moves `temporary` to `path`, in the same directory. Returns 0, or the system's number of an error: `EEXIST` when
  /// there is something of that name. Then `temporary` is as it was.
  ///
  /// It survives a power loss when the directory is synced afterwards, whichever way was taken. Of file systems without
  /// hard links and without exclusive renames (NFS, some of FUSE) the name is taken by an empty file first, which a crash
  /// in that moment leaves behind.
  package static func take(_ path: String, for temporary: String) -> Int32 {
    // A link, unlike a rename, fails when there is something of that name.
    var failure =
      abilities.hardLinks && link(temporary, path) == 0 ? 0 : (abilities.hardLinks ? errno : EPERM)
    if failure == 0 {
      unlink(temporary)
      return 0
    }
    guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EINVAL].contains(failure) else { return failure }
    failure = EINVAL
    if abilities.exclusiveRenames {
      if renameat2(AT_FDCWD, temporary, AT_FDCWD, path, UInt32(RENAME_NOREPLACE)) == 0 { return 0 }
      failure = errno
    }
    guard [EINVAL, ENOSYS, EOPNOTSUPP].contains(failure) else { return failure }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return errno }
    close(descriptor)
    guard rename(temporary, path) == 0 else {
      failure = errno
      unlink(path)
      return failure
    }
    return 0
  }
}
