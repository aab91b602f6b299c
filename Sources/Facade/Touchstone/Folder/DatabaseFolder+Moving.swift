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
  /// and `alreadyExists` if there is a database `newName`, another file with its file name, or on a server a schema of that name.
  /// On a server it throws a `StorageError` with the code `unsupported` if the schema has tables of something else, which would get
  /// another name too, and `permissionDenied` if the user may not rename the schema.
  public func move(_ name: String, to newName: String) throws {
    if case .server(let place) = try self.place(of: name),
      case .server(let target) = try self.place(of: newName)
    {
      return try place.move(to: target)
    }
    let path = try self.path(of: name)
    let target = try directory(of: newName)
    let newPath = try self.path(of: newName)
    let locked = try LockedDirectory(DatabaseDirectory(path))
    try OpenDatabase.removeUnfinished(target)
    try locked.move(path, to: newPath)
  }
}
