import CZip
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A zip file that holds a database. Its content isn't trusted: files that don't belong to a database are
/// skipped, names that lead out of the directory are refused, and no more bytes are written than the zip
/// file's directory says, the disk has room for, and 200 times its own size.
final class ZipArchive {
  private let path: String
  private let archive: OpaquePointer
  private static let bufferBytes = 256 << 10

  private struct File {
    var index: zip_uint64_t
    /// The path in the database's directory.
    var name: String
    var bytes: UInt64
  }

  /// Which files belong to a database.
  struct Contents {
    /// The file in the database's own directory by which a database is found.
    let root: String
    /// Whether a file belongs to the database, by the parts of its path in that directory.
    let isWanted: ([String]) -> Bool

    /// A Touchstone database.
    static var database: Contents {
      Contents(root: "database.json") { parts in
        switch parts.count {
        case 1:
          parts[0] == "database.json" || DatabaseDirectory.isKeyFile(parts[0]) || parts[0].hasPrefix("data-")
        // An engine's files may be in a directory too.
        case 2: DatabaseDirectory.isBlobDirectory(parts[0]) || parts[0].hasPrefix("data-")
        default: false
        }
      }
    }
  }

  /// Opens the file. Throws `notADatabase` if it isn't a zip file.
  init(_ path: String) throws {
    var code: Int32 = 0
    guard let archive = zip_open(path, ZIP_RDONLY, &code) else {
      var error = zip_error_t()
      zip_error_init_with_code(&error, code)
      defer { zip_error_fini(&error) }
      let reason = String(cString: zip_error_strerror(&error))
      throw DatabaseError(.notADatabase, "the file can't be read as a zip file (\(reason))", path: path)
    }
    self.path = path
    self.archive = archive
  }

  deinit { zip_discard(archive) }

  /// Whether a file in the archive, at any depth, has the name by which a database is found.
  func contains(_ contents: Contents) -> Bool {
    (0..<zip_uint64_t(max(0, zip_get_num_entries(archive, 0)))).contains { index in
      guard let name = zip_get_name(archive, index, 0) else { return false }
      return String(cString: name).utf8.split(whereSeparator: Self.isSeparator).last
        .map { $0.elementsEqual(contents.root.utf8) } ?? false
    }
  }

  /// Unpacks the only database in the archive into a new directory. It may be at any depth in the archive.
  func unpackDatabase(
    to directory: String, _ contents: Contents = .database,
    onProgress: (_ done: Int, _ total: Int) throws -> Void
  ) throws {
    let files = try files(contents)
    let total = files.reduce(UInt64(0)) { $0.addingReportingOverflow($1.bytes).partialValue }
    guard files.allSatisfy({ $0.bytes <= UInt64(Int.max) / UInt64(files.count) }) else {
      throw damaged("the sizes of its entries are impossible")
    }
    let most = try mostBytes()
    guard total <= most else {
      throw damaged("its \(files.count) files would have \(total) bytes, more than 200 times its size")
    }
    guard mkdir(directory, 0o755) == 0 else {
      throw StorageError.system(errno, "can't make the directory", directory)
    }
    var room = statvfs()
    if statvfs(directory, &room) == 0, UInt64(room.f_bavail) * UInt64(room.f_frsize) < total {
      throw StorageError(.diskFull, "the disk has no room for the \(total) bytes in the zip file", path: path)
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.bufferBytes, alignment: 16)
    defer { buffer.deallocate() }
    var done = 0
    for file in files {
      try unpack(file, to: directory, buffer) { count in
        done += count
        try onProgress(done, Int(total))
      }
    }
  }

  /// The number of bytes that the file may unpack to. Databases shrink to a tenth or a twentieth; a file that says more than
  /// this wants to fill the disk.
  private func mostBytes() throws -> UInt64 {
    var status = stat()
    guard stat(path, &status) == 0 else { throw StorageError.system(errno, "can't read", path) }
    return max(256 << 20, UInt64(status.st_size) * 200)
  }

  private func files(_ contents: Contents) throws -> [File] {
    // Compares bytes: a slash and a combining mark after it are one `Character`.
    var entries: [(index: zip_uint64_t, parts: [ByteString], bytes: UInt64)] = []
    for index in 0..<zip_uint64_t(max(0, zip_get_num_entries(archive, 0))) {
      var status = zip_stat_t()
      let needed = zip_uint64_t(ZIP_STAT_NAME | ZIP_STAT_SIZE)
      guard zip_stat_index(archive, index, 0, &status) == 0, status.valid & needed == needed else {
        throw damaged("its list of entries can't be read")
      }
      let name = String(cString: status.name)
      // Entries for directories have no bytes. Directories are made as needed.
      if let last = name.utf8.last, Self.isSeparator(last) { continue }
      let parts = name.utf8.split(omittingEmptySubsequences: false, whereSeparator: Self.isSeparator)
        .map { ByteString($0) }
      guard parts.allSatisfy({ !$0.bytes.isEmpty && $0 != "." && $0 != ".." }) else {
        throw damaged("the name '\(name)' leads outside the directory")
      }
      entries.append((index, parts, status.size))
    }
    let roots = entries.filter { $0.parts.last.map { $0 == ByteString(contents.root) } ?? false }
    guard let root = roots.first?.parts.dropLast() else {
      throw DatabaseError(.notADatabase, "the zip file contains no database", path: path)
    }
    guard roots.count == 1 else {
      throw DatabaseError(
        .notADatabase, "the zip file contains \(roots.count) databases instead of one", path: path)
    }
    return entries.compactMap { entry in
      guard entry.parts.starts(with: root) else { return nil }
      let parts = entry.parts.dropFirst(root.count).map(\.string)
      return contents.isWanted(parts)
        ? File(index: entry.index, name: parts.joined(separator: "/"), bytes: entry.bytes) : nil
    }
  }

  /// Some programs for Windows write backslashes. No file of a database has one in its name.
  private static func isSeparator(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\")
  }

  private func unpack(
    _ file: File, to directory: String, _ buffer: UnsafeMutableRawBufferPointer,
    onProgress: (Int) throws -> Void
  ) throws {
    guard let entry = zip_fopen_index(archive, file.index, 0) else {
      throw damaged("'\(file.name)' can't be read: \(String(cString: zip_strerror(archive)))")
    }
    defer { zip_fclose(entry) }
    let target = directory + "/" + file.name
    if let slash = file.name.utf8.firstIndex(of: UInt8(ascii: "/")) {
      let inner = directory + "/" + file.name[..<slash]
      guard mkdir(inner, 0o755) == 0 || errno == EEXIST else {
        throw StorageError.system(errno, "can't make the directory", inner)
      }
    }
    let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't unpack a zip file to", target) }
    defer { close(descriptor) }
    var rest = file.bytes
    while true {
      // The read at the end of the entry also checks the checksum.
      let count = zip_fread(entry, buffer.baseAddress, zip_uint64_t(buffer.count))
      guard count >= 0 else {
        throw damaged("'\(file.name)' can't be read: \(String(cString: zip_file_strerror(entry)))")
      }
      guard count > 0 else { break }
      guard UInt64(count) <= rest else { throw damaged("'\(file.name)' has more bytes than its entry says") }
      rest -= UInt64(count)
      var written = 0
      while written < count {
        let result = write(descriptor, buffer.baseAddress?.advanced(by: written), Int(count) - written)
        if result < 0, errno == EINTR { continue }
        guard result > 0 else { throw StorageError.system(errno, "can't unpack a zip file to", target) }
        written += result
      }
      try onProgress(Int(count))
    }
    guard rest == 0 else { throw damaged("'\(file.name)' has fewer bytes than its entry says") }
  }

  private func damaged(_ what: String) -> DatabaseError {
    DatabaseError(.damaged, "the zip file can't be used: \(what)", path: path)
  }
}
