import CFileSystem

#if canImport(Glibc)
  import Glibc
#endif

/// Gives a finished file a name that no other file has. If the name is taken, the existing file stays
/// unchanged.
package enum NewFileName {
  /// The operations that the file system supports. Only tests set this, to test the fallbacks.
  package struct Abilities: Sendable {
    /// Whether `link` works.
    package var hardLinks = true
    /// Whether `renameat2` with `RENAME_NOREPLACE` works.
    package var exclusiveRenames = true
    /// Whether a file can be made without a name (`NamelessFile`).
    package var namelessFiles = true
    /// All abilities.
    package init() {}
  }

  /// The abilities of the file system in the current task. Only tests change them.
  @TaskLocal package static var abilities = Abilities()

  /// Renames `temporary` to `path`, in the same directory. Returns 0 or an `errno` value. If that is
  /// `EEXIST`, the name is taken and `temporary` is unchanged.
  ///
  /// The new name survives a power loss once the directory is synced. Some file systems have neither hard
  /// links nor exclusive renames (NFS, some FUSE file systems). There an empty file first reserves the name.
  /// A crash in that moment leaves the empty file behind.
  package static func take(_ path: String, for temporary: String) -> Int32 {
    // Unlike a rename, a link fails if the name is taken.
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
