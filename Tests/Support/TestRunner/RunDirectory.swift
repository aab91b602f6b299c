import Foundation
import System

/// The temporary directory of a run. Its tests have it for their TMPDIR, and it is removed at the end with all that they have left.
///
/// Tests make many small files and sync them. In memory that costs no time of a disk, and much less of the processor.
final class RunDirectory {
  /// Its path.
  let path: String
  /// Open and locked while the run goes on. Others see by that that it isn't left over.
  private let descriptor: Int32

  private static let memory = "/dev/shm"
  private static let prefix = "touchstone-tests-"
  /// The room that a directory in memory has to have, in bytes. A run of `make test` takes up to 600 MB.
  private static let memoryBytes: UInt64 = 3 << 30

  /// Makes one below the directory `parent`. What killed runs have left there is removed.
  init(in parent: String) throws {
    Self.removeLeftovers(in: parent)
    var template = Array("\(parent)/\(Self.prefix)XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw RunnerError("no directory in \(parent): errno \(errno)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // Servers of other users have directories of their own in it.
    chmod(path, 0o755)
    descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    flock(descriptor, LOCK_EX | LOCK_NB)
  }

  /// Makes one in memory; nil where there is no file system in memory, or too little room.
  static func inMemory() -> RunDirectory? {
    var room = statvfs()
    guard statvfs(memory, &room) == 0, UInt64(room.f_bavail) * UInt64(room.f_frsize) >= memoryBytes,
      availableMemory() >= 2 * memoryBytes
    else { return nil }
    return try? RunDirectory(in: memory)
  }

  func remove() {
    try? FileManager.default.removeItem(atPath: path)
    close(descriptor)
  }

  /// The bytes of memory that programs can still have without swapping.
  private static func availableMemory() -> UInt64 {
    guard let text = try? AtomicFile.read("/proc/meminfo", limit: 1 << 20) else { return 0 }
    let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first {
      $0.hasPrefix("MemAvailable:")
    }
    return (line?.split(separator: " ").compactMap { UInt64($0) }.first ?? 0) << 10
  }

  private static func removeLeftovers(in parent: String) {
    for name in (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
    where name.hasPrefix(prefix) {
      let descriptor = open("\(parent)/\(name)", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      if flock(descriptor, LOCK_EX | LOCK_NB) == 0 {
        try? FileManager.default.removeItem(atPath: "\(parent)/\(name)")
      }
    }
  }
}
