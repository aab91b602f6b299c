import Storage

#if canImport(Glibc)
  import Glibc
#endif

// How a database is replaced: the files of the new one move into the directory of the old one, under names
// that aren't in use. One rename of database.json then changes from the old files to the new ones. So every
// file system that can rename a file can replace a database, and the lock file stays the same.

extension LockedDirectory {
  /// Removes what an interrupted operation left. Throws `unsupportedVersion` for a database of a later
  /// release, which may have files that this release doesn't know. A damaged description isn't an error.
  func removeLeftovers() throws {
    do { try directory.removeLeftovers(directory.readDescription()) } catch let error as DatabaseError
      where error.code == .damaged
    {}
  }

  /// Replaces all files of the database by those of `new`, in one step. After a crash at any moment the
  /// database is the old one or the new one, complete. The next open for writing removes the files of the
  /// other one.
  func replaceFiles(with new: UnfinishedDatabase) throws {
    // The old owner, and whoever else could, can use the new files too.
    try DatabaseAccess(of: directory)?.apply(to: new.directory, isEncrypted: new.description.key != nil)
    try FileTree.sync(new.directory.path)
    let names = try freeNames(for: new.description)
    var moved: [String] = []
    do {
      for name in try new.directory.contents() {
        guard let free = Self.newName(of: name, new.description, names) else { continue }
        moved.append(directory.file(free))
        guard rename(new.directory.file(name), directory.file(free)) == 0 else {
          throw StorageError.system(errno, "can't put the new database in its place", directory.file(free))
        }
      }
      try AtomicFile.syncDirectory(of: directory.descriptionPath)
      try directory.write(names)
    } catch {
      // If the description has its name already, only the sync failed: either one may survive a power loss.
      if (try? directory.readDescription()) != names {
        for path in moved { try? FileTree.remove(path) }
      }
      throw error
    }
    // The database is replaced. What can't be removed now is removed by the next open for writing.
    try? directory.removeLeftovers(names)
  }

  /// A description of the new database with file names that no file in the directory has.
  private func freeNames(for new: DatabaseDirectory.Description) throws -> DatabaseDirectory.Description {
    // The old database may have no blobs yet. Their directory would be the new one's after an interrupted replacement.
    let old = try? directory.readDescription()
    let reserved = [old?.file, old?.key, old?.blobs ?? DatabaseDirectory.blobs].compactMap { $0 }
    let taken = try directory.contents() + reserved
    /// The first free name, counted from 1. There are more numbers than files.
    func first(_ name: (Int) -> String, isTaken: (String) -> Bool = taken.contains) -> String {
      name((1...max(1, taken.count)).first { !isTaken(name($0)) } ?? taken.count + 1)
    }
    var description = new
    let data = first({ "data-\($0)." }) { prefix in taken.contains { $0.hasPrefix(prefix) } }
    description.file = data + new.file.dropFirst("data-1.".count)
    if new.key != nil { description.key = first { $0 == 1 ? DatabaseDirectory.key : "key-\($0).json" } }
    let blobs = first { $0 == 1 ? DatabaseDirectory.blobs : "\(DatabaseDirectory.blobs)-\($0)" }
    description.blobs = blobs == DatabaseDirectory.blobs ? nil : blobs
    return description
  }

  /// The name that a file of the new database gets; nil if it isn't needed.
  private static func newName(
    of name: String, _ old: DatabaseDirectory.Description, _ new: DatabaseDirectory.Description
  ) -> String? {
    if name == old.file || name.hasPrefix(old.file + "-") { return new.file + name.dropFirst(old.file.count) }
    if name == old.key { return new.key }
    return name == old.blobs ?? DatabaseDirectory.blobs ? new.blobs ?? DatabaseDirectory.blobs : nil
  }
}
