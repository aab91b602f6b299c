import Bytes
import FoundationEssentials
import System

#if canImport(Glibc)
  import Glibc
#endif

/// Writes entries to text files in a directory, which it rotates.
///
/// ```swift
/// let files = try LogFiles(directory: "logs", maximumFiles: 20)
/// Log.add(files, levels: LogLevels(.verbose))
/// ```
///
/// Each process, and each `LogFiles` object, writes a file of its own, so processes can share a directory. A file
/// is `NAME-YYYYMMDDThhmmssmmmZ-PROCESS-NUMBER.log`, only its owner can read it, and its names are in the order of
/// time. A new one begins at the first entry, when the last one is full or too old, and when it was removed.
///
/// An entry is written whole with one call of the system, so a crash of the process loses none. After an entry
/// of the level `error`, and at `flush()`, the file is synced to the disk. A failed write drops the entry and
/// never reaches the database: the other sinks get a warning when the first entry is lost, and the file gets a
/// line with the number of lost ones when it can be written again.
public final class LogFiles: ImmediateSink {
  /// The directory of the files.
  public let directory: String
  /// The beginning of their names.
  public let name: String
  /// The size that a file doesn't exceed, in bytes. A longer entry gets a file of its own.
  public let maximumFileBytes: Int
  /// The number of files of this name in the directory that are kept. The oldest are removed, but none that a
  /// process still writes.
  public let maximumFiles: Int
  /// The age at which files are removed and a new one is begun; nil for no limit.
  public let maximumAge: Duration?

  private struct State {
    var descriptor: Int32 = -1
    var path: String?
    var begun = 0
    var number = 0
    /// When old files were last removed, in seconds since 1970.
    var cleaned = 0
    var lost = 0
  }

  private let state = Lock(State())

  /// Makes a sink, and the directory if it doesn't exist. Its parent must exist.
  ///
  /// `name` has 1 to 64 bytes and no slash. `maximumFileBytes` is at least 4,096, `maximumFiles` at least 1.
  /// Throws a `StorageError` for other values, and if the directory can't be made or written.
  public init(
    directory: String, name: String = "touchstone", maximumFileBytes: Int = 1 << 20, maximumFiles: Int = 10,
    maximumAge: Duration? = .seconds(30 * 86_400)
  ) throws {
    guard (1...64).contains(name.utf8.count), !name.utf8.contains(where: { $0 == 0x2F || $0 < 0x20 }) else {
      throw StorageError(.invalidArgument, "the name of log files must have 1 to 64 bytes and no slash")
    }
    guard maximumFileBytes >= 4_096, maximumFiles >= 1, maximumAge.map({ $0 >= .seconds(1) }) ?? true else {
      throw StorageError(
        .invalidArgument,
        "log files need a size of at least 4096 bytes, a number of at least 1, and an age of at least a second"
      )
    }
    guard !directory.isEmpty, !directory.utf8.contains(0) else {
      throw StorageError(.invalidArgument, "the directory of log files is empty or contains a zero byte")
    }
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
      throw StorageError.system(errno, "can't make the directory of log files", directory)
    }
    var status = stat()
    guard stat(directory, &status) == 0 else {
      throw StorageError.system(errno, "can't write log files in the directory", directory)
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw StorageError.system(ENOTDIR, "can't write log files in", directory)
    }
    guard access(directory, W_OK | X_OK) == 0 else {
      throw StorageError.system(errno, "can't write log files in the directory", directory)
    }
    // The process may change its current directory.
    let resolved = realpath(directory, nil)
    self.directory = resolved.map { String(cString: $0) } ?? directory
    free(resolved)
    self.name = name
    self.maximumFileBytes = maximumFileBytes
    self.maximumFiles = maximumFiles
    self.maximumAge = maximumAge
  }

  deinit { state.withLock { Self.end(&$0) } }

  /// The paths of the files of this name in the directory, the oldest first, also those of other processes.
  public var files: [String] { names().map { directory + "/" + $0 } }

  /// The path of the file that is written now; nil before the first entry.
  public var currentFile: String? { state.withLock { $0.path } }

  /// Syncs the file to the disk.
  public func flush() {
    state.withLock { if $0.descriptor >= 0 { fdatasync($0.descriptor) } }
  }

  // MARK: Writing

  func write(lines: [UInt8], of entry: LogEntry) -> String? {
    let now = Int(entry.date.timeIntervalSince1970)
    return state.withLock { state in
      var (begin, failure) = prepare(&state, lines.count, entry.date)
      if failure == 0, state.lost > 0 {
        let note = LogEntry(
          date: entry.date, level: .warning, domain: .database, database: nil,
          message: "\(state.lost) log entries were lost, because this file couldn't be written")
        failure = append(note.lines, at: begin, &state)
        if failure == 0 {
          state.lost = 0
          begin += note.lines.count
        }
      }
      if failure == 0 { failure = append(lines, at: begin, &state) }
      guard failure == 0 else {
        state.lost += 1
        guard state.lost == 1 else { return nil }
        let reason = String(cString: strerror(failure))
        return "log entries are being lost, because files in \(directory) can't be written (\(reason))"
      }
      if entry.level >= .error { fdatasync(state.descriptor) }
      if abs(now - state.cleaned) >= 3_600 { clean(&state, now) }
      return nil
    }
  }

  /// Appends lines to a file of `begin` bytes, whole or not at all. Returns the error of the system, or 0.
  private func append(_ lines: [UInt8], at begin: Int, _ state: inout State) -> Int32 {
    let (count, error) = WholeWrite.write(lines, to: state.descriptor)
    guard error != 0, count > 0 else { return error }
    // Only this object writes the file. If it can't be cut, the next entry begins another one.
    if ftruncate(state.descriptor, off_t(begin)) != 0 { Self.end(&state) }
    return error
  }

  /// Opens a file if a new one is due. Returns the size of the file, and the error of the system if there is none.
  private func prepare(_ state: inout State, _ bytes: Int, _ date: Date) -> (begin: Int, failure: Int32) {
    let now = Int(date.timeIntervalSince1970)
    let size = size(state)
    let isFull = size.map { $0 > 0 && $0 + bytes > maximumFileBytes } ?? true
    let isOld = maximumAge.map { now - state.begun >= Int($0.components.seconds) } ?? false
    if let size, !isFull, !isOld { return (size, 0) }
    guard open(&state, date) else {
      let failure = errno
      // Better a file that is too long than none.
      return size.map { ($0, 0) } ?? (0, failure)
    }
    clean(&state, now)
    return (0, 0)
  }

  /// The size of the current file; nil if there is none, or if it was removed.
  private func size(_ state: State) -> Int? {
    var status = stat()
    guard state.descriptor >= 0, fstat(state.descriptor, &status) == 0, status.st_nlink > 0 else {
      return nil
    }
    return Int(status.st_size)
  }

  private func open(_ state: inout State, _ date: Date) -> Bool {
    let time = LogEntry.time(date).filter { $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: ":") && $0 != 0x2E }
    for _ in 0..<1_000 {
      state.number += 1
      let name = "\(name)-\(String(decoding: time, as: UTF8.self))-\(getpid())-\(state.number).log"
      let path = directory + "/" + name
      let descriptor = Glibc.open(
        path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
      guard descriptor >= 0 else {
        if errno == EEXIST { continue }
        return false
      }
      // Tells others that it is being written. On a file system without locks nothing tells them.
      _ = flock(descriptor, LOCK_EX | LOCK_NB)
      Self.end(&state)
      state.descriptor = descriptor
      state.path = path
      state.begun = Int(date.timeIntervalSince1970)
      return true
    }
    errno = EEXIST
    return false
  }

  private static func end(_ state: inout State) {
    guard state.descriptor >= 0 else { return }
    flock(state.descriptor, LOCK_UN)
    close(state.descriptor)
    state.descriptor = -1
    state.path = nil
  }

  // MARK: Old files

  /// The names of the files, the oldest first.
  private func names() -> [String] {
    var names: [(name: String, time: String, process: Int, number: Int)] = []
    for found in (try? FileTree.names(in: directory)) ?? [] {
      if let parts = parts(found) { names.append((found, parts.time, parts.process, parts.number)) }
    }
    // Of one time, by process and number.
    return names.sorted { ($0.time, $0.process, $0.number) < ($1.time, $1.process, $1.number) }.map(\.name)
  }

  /// The parts of a file's name; nil if this type doesn't make such names. Such a file is never removed.
  private func parts(_ file: String) -> (time: String, process: Int, number: Int)? {
    guard file.hasPrefix(name + "-"), file.hasSuffix(".log"), file.utf8.count > name.utf8.count + 5 else {
      return nil
    }
    let parts = file.utf8.dropFirst(name.utf8.count + 1).dropLast(4).split(
      separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    func isNumber(_ digits: Substring.UTF8View.SubSequence) -> Bool {
      (1...18).contains(digits.count) && digits.allSatisfy { (0x30...0x39).contains($0) }
    }
    guard parts.count == 3, parts[0].count == 19, isNumber(parts[1]), isNumber(parts[2]) else { return nil }
    let time = Array(parts[0])
    guard time[8] == UInt8(ascii: "T"), time[18] == UInt8(ascii: "Z"),
      (time[0..<8] + time[9..<18]).allSatisfy({ (0x30...0x39).contains($0) }),
      let process = Int(String(decoding: parts[1], as: UTF8.self)),
      let number = Int(String(decoding: parts[2], as: UTF8.self))
    else { return nil }
    return (String(decoding: time, as: UTF8.self), process, number)
  }

  /// Removes files that are too many or too old.
  private func clean(_ state: inout State, _ now: Int) {
    state.cleaned = now
    var kept = names()
    let current = state.path
    for file in kept {
      let path = directory + "/" + file
      if path == current { continue }
      var status = stat()
      guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      let age = now - Int(status.st_mtim.tv_sec)
      let isOld = maximumAge.map { age >= Int($0.components.seconds) } ?? false
      guard isOld || kept.count > maximumFiles else { continue }
      if remove(path) { kept.removeAll { $0 == file } }
    }
  }

  /// Removes a file unless someone writes it.
  private func remove(_ path: String) -> Bool {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return false }
    defer {
      flock(descriptor, LOCK_UN)
      close(descriptor)
    }
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0 && unlink(path) == 0
  }
}
