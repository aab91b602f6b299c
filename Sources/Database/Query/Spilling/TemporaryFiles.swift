import Storage
import System

/// The temporary files of one run: how much they may hold, and how they are divided. One thread uses it.
///
/// The files have no names and are gone with the run, also when the process is killed. What they hold is encrypted with keys that only the
/// run has, so nothing of an encrypted database lies about.
final class TemporaryFiles {
  /// What a run may have of them.
  struct Limits {
    /// Nil stands for that of the system.
    var directory: String?
    /// The size of all files, in bytes.
    var bytes: Int
    /// What the run shares with others; nil if it shares nothing.
    var shared: QueryShare?
    /// From so many bytes of memory on, rows go to files.
    var beginsAt: Int
  }

  /// Where the files are.
  let directory: String
  /// The size of a block, in bytes. It depends on the memory of the run: a merge of sorted rows has a block of each part in memory.
  let blockBytes: Int
  private let limit: Int
  private let beginsAt: Int
  private let shared: QueryShare?
  private var used = 0
  /// What was written in the run altogether, in bytes.
  private(set) var written = 0

  init(_ limits: Limits) {
    directory = limits.directory ?? NamelessFile.directory
    limit = limits.bytes
    shared = limits.shared
    var block = 1 << 10
    while block < 64 << 10, block * 64 <= limits.beginsAt { block *= 2 }
    blockBytes = block
    beginsAt = limits.beginsAt
  }

  /// How many sorted parts are merged at once, when reading one takes so many bytes.
  func mergedAtOnce(readerBytes: Int) -> Int { max(2, min(64, beginsAt / 2 / readerBytes)) }

  deinit { shared?.give(used) }

  /// Counts bytes that are about to be written.
  ///
  /// - Throws: `diskLimit` or `memoryBusy`.
  func take(_ bytes: Int) throws {
    guard used + bytes <= limit else {
      throw QueryError(
        .diskLimit,
        "the query needs more temporary files than its limit of \(limit) bytes; a LIMIT, an index or fewer columns"
          + " need less, or set a higher Query.Options.temporaryFileLimit")
    }
    if let shared, !shared.take(bytes) {
      throw QueryError(
        .memoryBusy,
        "all queries together need more than the \(shared.total) bytes of temporary files that they share; try again"
          + " later")
    }
    used += bytes
    written += bytes
  }

  func giveBack(_ bytes: Int) {
    used -= bytes
    shared?.give(bytes)
  }

  /// The error of a failed call of the system.
  func failure(_ number: Int32, _ what: String) -> StorageError {
    .system(number, "can't \(what) a query's temporary file in the directory", directory)
  }

  /// The error of a block that isn't the one that was written.
  var damaged: StorageError {
    StorageError(.damaged, "a query's temporary file came back changed, in the directory", path: directory)
  }
}
