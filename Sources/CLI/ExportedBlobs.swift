import Blobs
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// The blobs of an export as JSON lines: a directory beside the lines with a file for each, named by its digest as in a
/// database that isn't encrypted (docs/blobs.md). It is made with its first file.
struct ExportedBlobs {
  static let option = Option(
    "blobs", "DIR", "The directory of the blobs; FILE.blobs when it is left out")

  /// The directory that belongs to a file of lines.
  static func directory(beside file: String) -> String { file + ".blobs" }

  private let store: BlobStore
  private var isDone: Set<BlobDigest> = []
  /// Blobs that were copied, or were there.
  private(set) var count = 0
  /// Blobs that lines name and that aren't there.
  private(set) var missing = 0

  /// To read from, or to write to.
  init(_ directory: String, isReadOnly: Bool) throws {
    store = try BlobStore(directory: directory, isReadOnly: isReadOnly, durability: .none)
  }

  /// Copies the blobs that a line names out of the database, those that aren't there already.
  mutating func export(namedIn line: [UInt8], from database: Database) throws {
    try line.withUnsafeBytes { line in
      try Self.forEachDigest(in: line) { digest, isReference in
        guard isDone.insert(digest).inserted else { return }
        guard try !store.contains(digest) else { return count += 1 }
        let reader: BlobReader
        do { reader = try database.open(Blob(digest: digest, length: 0)) } catch let error as StorageError
          where error.code == .notFound
        {
          // A text may look like a digest and be none.
          if isReference { missing += 1 }
          return
        }
        try Self.copy(reader, to: store.makeWriter()) { stored in
          guard stored.digest == digest else { throw Self.damaged(digest, store.directory) }
          try store.place(stored)
        }
        count += 1
      }
    }
  }

  /// Brings the blobs that a line names into the database, for a save in the same open.
  mutating func `import`(namedIn line: UnsafeRawBufferPointer, into database: Database) throws {
    try Self.forEachDigest(in: line) { digest, _ in
      let blob = Blob(digest: digest, length: 0)
      guard try !database.contains(blob), try store.contains(digest) else { return }
      try Self.copy(store.open(digest), to: database.makeBlobWriter()) { stored in
        guard stored.digest == digest else { throw Self.damaged(digest, store.directory) }
      }
      count += 1
    }
  }

  /// Removes what isn't needed any more.
  func finish() { store.discardUnsaved() }

  private static func copy(
    _ reader: BlobReader, to writer: BlobWriter, _ body: (StoredBlob) throws -> Void
  ) throws {
    try writer.write(contentsOf: reader)
    try body(writer.finish())
  }

  private static func damaged(_ digest: BlobDigest, _ directory: String) -> StorageError {
    StorageError(.damaged, "the blob \(digest) holds other bytes than its name says", path: directory)
  }

  /// How many blobs of the database a line names.
  static func count(namedIn line: [UInt8], of database: Database) throws -> Int {
    var count = 0
    try line.withUnsafeBytes { line in
      try forEachDigest(in: line) { digest, _ in
        if try database.contains(Blob(digest: digest, length: 0)) { count += 1 }
      }
    }
    return count
  }

  /// Calls `body` with everything that looks like a digest in a line of JSON, which may write a slash as `\/`, and with
  /// whether it stands there as one: `"digest":"sha1-…"`.
  private static func forEachDigest(
    in line: UnsafeRawBufferPointer, _ body: (_ digest: BlobDigest, _ isReference: Bool) throws -> Void
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
        try body(digest, stands("\"digest\":\"", before: start))
      }
    }
  }
}
