import Blobs
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// The blobs of a JSON lines export: a directory beside the lines, with one file per blob. The files are
/// named by the digest, as in a plain database (docs/blobs.md). The directory is made with its first file.
struct ExportedBlobs {
  static let option = Option(
    "blobs", "DIR", "The directory of the blobs (FILE.blobs)")

  /// The directory of blobs for a file of lines.
  static func directory(beside file: String) -> String { file + ".blobs" }

  private let store: BlobStore
  /// Whether the directory wasn't there.
  private let isNew: Bool
  private var isDone: Set<BlobDigest> = []
  /// The number of blobs that were copied or were already there.
  private(set) var count = 0
  /// The blobs that lines name and the database doesn't have. Text can look like a digest without being one.
  private var lost: Set<BlobDigest> = []

  /// Opens the directory for reading or for writing.
  init(_ directory: String, isReadOnly: Bool) throws {
    isNew = access(directory, F_OK) != 0
    store = try BlobStore(directory: directory, isReadOnly: isReadOnly, durability: .none)
  }

  /// Copies the blobs that a line names from the database, except those that are there already. Returns those that the database
  /// doesn't have.
  mutating func export(namedIn line: [UInt8], from database: Database) throws -> Set<BlobDigest> {
    var missing: Set<BlobDigest> = []
    try line.withUnsafeBytes { line in
      try Self.forEachDigest(in: line) { digest, _ in
        guard isDone.insert(digest).inserted else {
          if lost.contains(digest) { missing.insert(digest) }
          return
        }
        guard try !store.contains(digest) else { return count += 1 }
        let reader: BlobReader
        do { reader = try database.open(Blob(digest: digest, length: 0)) } catch let error as StorageError
          where error.code == .notFound
        {
          lost.insert(digest)
          missing.insert(digest)
          return
        }
        try Self.copy(reader, to: store.makeWriter()) { stored in
          guard stored.digest == digest else { throw Self.damaged(digest, store.directory) }
          try store.place(stored)
        }
        count += 1
      }
    }
    return missing
  }

  /// Copies the blobs that a line names into the database, if there are exported ones. The document must be saved in the same
  /// open. Returns the blobs that the database hasn't afterwards. Text can look like a digest without being one.
  static func `import`(
    namedIn line: UnsafeRawBufferPointer, from exported: inout ExportedBlobs?, into database: Database
  ) throws -> Set<BlobDigest> {
    var missing: Set<BlobDigest> = []
    try forEachDigest(in: line) { digest, _ in
      guard try !database.contains(Blob(digest: digest, length: 0)) else { return }
      guard let store = exported?.store, try store.contains(digest) else {
        missing.insert(digest)
        return
      }
      try copy(store.open(digest), to: database.makeBlobWriter()) { stored in
        guard stored.digest == digest else { throw damaged(digest, store.directory) }
      }
      exported?.count += 1
    }
    return missing
  }

  /// Removes temporary files.
  func finish() { store.discardUnsaved() }

  /// Undoes an export that has failed: removes the directory, unless it was there before.
  func discard() {
    finish()
    if isNew { try? FileTree.remove(store.directory) }
  }

  private static func copy(
    _ reader: BlobReader, to writer: BlobWriter, _ body: (StoredBlob) throws -> Void
  ) throws {
    try writer.write(contentsOf: reader)
    try body(writer.finish())
  }

  private static func damaged(_ digest: BlobDigest, _ directory: String) -> StorageError {
    StorageError(.damaged, "the bytes of blob \(digest) don't match its digest", path: directory)
  }

  /// The number of blobs of the database that a line names.
  static func count(namedIn line: [UInt8], of database: Database) throws -> Int {
    var count = 0
    try line.withUnsafeBytes { line in
      try forEachDigest(in: line) { digest, _ in
        if try database.contains(Blob(digest: digest, length: 0)) { count += 1 }
      }
    }
    return count
  }

  /// Calls `body` for each blob that a line of JSON names by its digest, `"digest":"sha1-…"`, with the position after the quote
  /// that ends the digest.
  static func forEachReference(
    in line: UnsafeRawBufferPointer, _ body: (_ digest: BlobDigest, _ end: Int) throws -> Void
  ) throws {
    try forEachDigest(in: line) { digest, isReference, end in
      if isReference, end < line.count, line[end] == UInt8(ascii: "\"") { try body(digest, end + 1) }
    }
  }

  private static func forEachDigest(
    in line: UnsafeRawBufferPointer, _ body: (_ digest: BlobDigest, _ isReference: Bool) throws -> Void
  ) throws {
    try forEachDigest(in: line) { digest, isReference, _ in try body(digest, isReference) }
  }

  /// Calls `body` for each text in a line of JSON that looks like a digest. JSON may write a slash as `\/`.
  /// `isReference` says whether it is the value of a digest: `"digest":"sha1-…"`, and `end` is the position after it.
  private static func forEachDigest(
    in line: UnsafeRawBufferPointer,
    _ body: (_ digest: BlobDigest, _ isReference: Bool, _ end: Int) throws -> Void
  ) throws {
    guard let base = line.baseAddress else { return }
    func stands(_ text: StaticString, before end: Int) -> Bool {
      let start = end - text.utf8CodeUnitCount
      return start >= 0 && memcmp(base + start, text.utf8Start, text.utf8CodeUnitCount) == 0
    }
    var position = 0
    while let found = memchr(base + position, 0x2D, line.count - position) {
      position = UnsafeRawPointer(found) - base + 1
      guard stands("sha1-", before: position) else { continue }
      let start = position - 5
      var text: [UInt8] = []
      var index = start
      while index < line.count, text.count < BlobDigest.textCount {
        let isEscaped = line[index] == UInt8(ascii: "\\") && index + 1 < line.count
        if isEscaped, line[index + 1] == UInt8(ascii: "/") { index += 1 }
        text.append(line[index])
        index += 1
      }
      if let digest = text.withUnsafeBytes({ BlobDigest(text: $0) }) {
        try body(digest, stands("\"digest\":\"", before: start), index)
      }
    }
  }
}
