extension DatabaseFolder {
  /// Removes the database of that name with all its files, in one step: after a crash it is complete or gone.
  ///
  /// Throws `notFound` or `notADatabase` if there is none, and `inUse` if it is open in this or another
  /// process.
  public func delete(_ name: String) throws {
    if case .server(let place) = try place(of: name) { return try place.delete() }
    let directory = try directory(of: name)
    try LockedDirectory(directory).remove()
    try directory.removeLink()
  }

  /// Gives the database `name` the name `newName`, in one step: after a crash it has one of them.
  ///
  /// Throws `notFound` or `notADatabase` if there is none, `inUse` if it is open in this or another process,
  /// `invalidLocation` on a server, and `alreadyExists` if there is a database `newName` or another file with its file name.
  public func move(_ name: String, to newName: String) throws {
    let path = try self.path(of: name)
    let target = try directory(of: newName)
    let newPath = try self.path(of: newName)
    let locked = try LockedDirectory(DatabaseDirectory(path))
    try OpenDatabase.removeUnfinished(target)
    try locked.move(path, to: newPath)
  }
}
