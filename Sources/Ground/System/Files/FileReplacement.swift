#if canImport(Glibc)
  import Glibc
#endif

/// Writes a file of the user, in pieces, which appears complete or not at all. Everything that writes files which
/// others may have made goes through here (docs/permissions.md).
///
/// - A file that is replaced keeps its owner, its group and its permissions. Until it is complete, the new one is beside
///   it under a name that nobody has (`NAME.new-` and hex digits), and only its owner can read it.
/// - A symbolic link stays, and the file that it leads to is replaced, or made.
/// - A device, a pipe or a socket is written straight, and so is an open descriptor such as `/dev/stdout`.
package final class FileReplacement {
  /// What to write to. It is open until `commit()`.
  package let descriptor: Int32
  /// The path as it was given, for errors.
  private let path: String
  /// The file that is replaced, without links. Nil if the bytes are written straight.
  private let target: String?
  private let temporary: String
  private let replacement: AtomicFile.Replacement
  private var isOpen = true

  /// Whether nothing can be undone: the bytes go straight to a device, a pipe or an open descriptor.
  package var isStraight: Bool { target == nil }

  /// Begins to write the file at `path`. A new file has `permissions`, without the bits of the umask.
  ///
  /// With `replacement` refused, the name is taken as it is, and `commit()` throws `alreadyExists` if anything has it.
  /// Throws a `StorageError` that names `path`.
  package init(
    _ path: String, permissions: UInt32, replacement: AtomicFile.Replacement = .allowed
  ) throws {
    try StorageError.checkPath(path)
    self.path = path
    self.replacement = replacement
    let place = replacement == .refused ? .file(path) : try Self.place(of: path)
    switch place {
    case .straight(let descriptor):
      self.descriptor = descriptor
      target = nil
      temporary = ""
    case .file(let target):
      let access = replacement == .refused ? nil : FileAccess(of: target)
      (descriptor, temporary) = try Self.makeTemporary(for: target, path, access == nil ? permissions : 0o600)
      self.target = target
      guard let access else { return }
      do { try access.apply(to: descriptor, path: path) } catch {
        close(descriptor)
        unlink(temporary)
        throw error
      }
    }
  }

  deinit { abandon() }

  /// Ends without the file: an existing one stays as it is. What was written straight can't be taken back.
  package func abandon() {
    guard isOpen else { return }
    isOpen = false
    close(descriptor)
    if target != nil { unlink(temporary) }
  }

  /// Gives the file its name. It then survives a power loss. Throws a `StorageError` and leaves the old file.
  package func commit() throws {
    guard isOpen else { return }
    guard let target else {
      isOpen = false
      guard close(descriptor) == 0 else { throw StorageError.system(errno, "can't write", path) }
      return
    }
    defer { abandon() }
    guard fsync(descriptor) == 0 else { throw StorageError.system(errno, "can't sync", path) }
    switch replacement {
    case .allowed:
      guard rename(temporary, target) == 0 else { throw StorageError.system(errno, "can't replace", path) }
    case .refused:
      let failure = NewFileName.take(target, for: temporary)
      guard failure == 0 else { throw StorageError.system(failure, "can't make", path) }
    }
    isOpen = false
    close(descriptor)
    try AtomicFile.syncDirectory(of: target)
  }

  /// Writes all of `bytes` at the end.
  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw StorageError.system(errno, "can't write", path) }
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
  }

  // MARK: Where the bytes go

  private enum Place {
    case straight(Int32)
    case file(String)
  }

  /// The number of links that the system follows.
  private static let maximumLinks = 40

  private static func place(of path: String) throws -> Place {
    var status = stat()
    let exists = stat(path, &status) == 0
    // The system may forbid to follow a link of another user. A link without a target is followed to where it leads.
    guard exists || errno == ENOENT else { throw StorageError.system(errno, "can't write", path) }
    var target = path
    for _ in 0..<maximumLinks {
      if let number = openDescriptor(target) {
        let copy = fcntl(number, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw StorageError.system(errno, "can't write", path) }
        return .straight(copy)
      }
      guard let next = link(at: target) else { break }
      target = next
    }
    guard exists, status.st_mode & S_IFMT != S_IFREG else { return .file(target) }
    guard status.st_mode & S_IFMT != S_IFDIR else { throw StorageError.system(EISDIR, "can't write", path) }
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY)
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't write", path) }
    return .straight(descriptor)
  }

  /// The path that a symbolic link leads to; nil if there is no link.
  private static func link(at path: String) -> String? {
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(PATH_MAX)) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      count = start.withMemoryRebound(to: CChar.self, capacity: buffer.count) {
        max(0, readlink(path, $0, buffer.count))
      }
    }
    guard !bytes.isEmpty else { return nil }
    let text = String(decoding: bytes, as: UTF8.self)
    guard bytes.first != UInt8(ascii: "/") else { return text }
    return AtomicFile.directoryPath(of: path) + "/" + text
  }

  /// The number of an open descriptor of this process that a path names, such as `/proc/self/fd/1`.
  private static func openDescriptor(_ path: String) -> Int32? {
    let name = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(decoding: $0, as: UTF8.self) }
    guard let number = name.flatMap({ Int32($0) }), number >= 0 else { return nil }
    guard let resolved = realpath(AtomicFile.directoryPath(of: path), nil) else { return nil }
    defer { free(resolved) }
    let folder = String(cString: resolved)
    let process = "/proc/\(getpid())/"
    return folder.hasPrefix(process) && folder.hasSuffix("/fd") ? number : nil
  }

  private static func makeTemporary(
    for target: String, _ path: String, _ permissions: UInt32
  ) throws -> (descriptor: Int32, path: String) {
    // With the digits, the name must not be too long.
    let directory = AtomicFile.directoryPath(of: target)
    let name = target.utf8.split(separator: UInt8(ascii: "/")).last ?? Substring(target).utf8
    let base = target.utf8.count - name.count
    let start = name.count <= 200 ? target : String(decoding: target.utf8.prefix(base + 200), as: UTF8.self)
    for _ in 0..<100 {
      let digits = String(UInt64.random(in: 1 << 60...UInt64.max), radix: 16)
      let temporary = "\(start).new-\(digits)"
      let descriptor = open(
        temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode_t(permissions))
      if descriptor >= 0 { return (descriptor, temporary) }
      guard errno == EEXIST else {
        throw StorageError.system(
          errno, "can't make a new file in the directory '\(directory)' to write", path)
      }
    }
    throw StorageError.system(EEXIST, "can't make a new file in the directory '\(directory)' to write", path)
  }
}
