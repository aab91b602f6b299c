/// What stands on a server beside the entries of one database: its description, the lock of the processes that have it open, and its
/// blobs. Where a database is a directory, files do this.
///
/// May be used from any thread. Errors are `StorageError`s. They name the location without passwords.
package protocol ServerHome: AnyObject, Sendable {
  /// The location without passwords.
  var location: String { get }
  /// The name of the database on the server.
  var name: String { get }

  /// What the server has. Throws `notADatabase` if something else is there, and `unsupportedVersion` if a later release made it.
  func state() throws -> ServerHomeState
  /// Makes the place of a new database, which is unfinished until it is published. Removes what an interrupted creation has left.
  /// The caller holds the lock alone.
  func begin() throws
  /// Stores the description. The database is complete then, and its commits so far are durable.
  func publish(_ description: String) throws
  /// Removes the database with everything that it has. The caller holds the lock alone.
  func remove() throws
  /// Gives the database another name, in one step. The caller holds the locks of both names alone. Throws `alreadyExists` if the
  /// name is taken, and `unsupported` if something else stands in its place too.
  func rename(to name: String) throws

  /// Takes the lock that every open shares, also if it is held alone. Waits up to `seconds` and returns whether it has it.
  func share(seconds: Double) throws -> Bool
  /// Takes the lock alone, beside a lock that this object shares. Waits up to `seconds`, stops waiting when `isDone` returns
  /// true, and returns whether it has it. On a server without such locks it has it at once.
  func takeAlone(seconds: Double, unless isDone: () throws -> Bool) throws -> Bool
  /// Whether the lock that was taken alone was held ever since. It is lost with its connection.
  func isStillAlone() throws -> Bool
  /// Gives up the lock that was taken alone. The shared one stays.
  func giveUpAlone()

  /// Runs `body`, work in the background, unless another process runs such a body for this database. Returns whether it ran. When
  /// that process dies, the next call runs. On a server without locks it always runs.
  func inTurn(_ body: () throws -> Void) throws -> Bool
  /// The turn to do work that lasts, which no connection has taken yet. On a server without locks everybody gets it.
  ///
  /// - Parameter purpose: the work, a word of lowercase letters other than `database`, `upkeep` and `blobs`.
  func workTurn(for purpose: String) -> any WorkTurn

  /// The blobs.
  var blobs: any BlobHome { get }
  /// Prepares for writing what was opened for reading only.
  func allowWriting(_ durability: Durability)

  /// Waits until another process may have committed, at most `seconds`. Returns false after that time and after `wake()`. Returns nil at
  /// once if the server doesn't tell of commits. One thread at a time calls it.
  func waitForCommit(seconds: Double) -> Bool?
  /// Ends `waitForCommit(seconds:)`, this one or the next one.
  func wake()

  /// Closes connections that nothing needs until the next call, as when the database has been opened.
  func rest()
  /// Gives up the lock, and closes the connections.
  func close()
}

/// How far a database on a server has come.
package enum ServerHomeState: Sendable, Equatable {
  /// There is none.
  case missing
  /// It is being made, or its creation was interrupted.
  case unfinished
  /// It is complete, and this is its description.
  case complete(String)
}

/// What is there of a kind of engine whose databases are on servers.
package struct EngineServer: Sendable {
  /// The schemes of its locations: `postgres` for `postgres://…`.
  package let schemes: [String]
  /// The library that speaks with servers, and its version.
  package let library: String
  /// Makes the home of the database at a location. Throws `invalidArgument` for a location that the engine can't read. It asks
  /// the server nothing yet.
  package let home: @Sendable (_ location: String, _ options: EngineOptions) throws -> any ServerHome

  /// The names of the complete databases at a location without a name, in the order of their bytes.
  package let names: @Sendable (_ location: String) throws -> [String]

  package init(
    schemes: [String], library: String,
    home: @escaping @Sendable (_ location: String, _ options: EngineOptions) throws -> any ServerHome,
    names: @escaping @Sendable (_ location: String) throws -> [String]
  ) {
    self.schemes = schemes
    self.library = library
    self.home = home
    self.names = names
  }
}
