import Encryption
import Storage

/// The blobs of a database, named by their contents.
///
/// A new blob is written under a temporary name and synced. `install(_:)` puts it in its final place, inside
/// the write transaction that saves the first document that refers to it. `sync()` runs before that
/// transaction commits. Unreferenced blobs are also removed inside a write transaction (`BlobSweep`). There
/// is only one write transaction at a time, over all processes. So no blob is removed between its
/// installation and the commit.
///
/// May be used from any thread. Errors are `StorageError`s that name the file.
package final class BlobStore: Sendable {
  /// Where the bytes are.
  let home: any BlobHome
  /// The directory of the files, or the location of the database on a server.
  package var directory: String { home.location }
  /// Whether the store is read-only.
  package var isReadOnly: Bool { access.withLock { $0.isReadOnly } }
  /// Whether blobs must survive a power loss.
  var syncs: Bool { access.withLock { $0.syncs } }
  private let access: Lock<(isReadOnly: Bool, syncs: Bool)>
  let keys: BlobKeys?
  let unsaved = Lock(UnsavedBlobs())

  /// Creates a store of the blobs in `directory`. With a data key they are encrypted. `durability` is the
  /// durability of the documents. `newAccess` is asked for each new blob.
  package convenience init(
    directory: String, dataKey: SecretBytes? = nil, isReadOnly: Bool = false,
    durability: Durability = .normal, newAccess: @escaping @Sendable () -> FileAccess? = { nil }
  ) throws {
    try self.init(
      BlobDirectory(directory, newAccess: newAccess), dataKey: dataKey, isReadOnly: isReadOnly,
      durability: durability)
  }

  /// Creates a store of the blobs that are in `home`. Their names and forms are those of files.
  package init(
    _ home: any BlobHome, dataKey: SecretBytes? = nil, isReadOnly: Bool = false,
    durability: Durability = .normal
  ) throws {
    self.home = home
    access = Lock((isReadOnly, durability != .none))
    keys = try dataKey.map { try BlobKeys(dataKey: $0) }
  }

  deinit { discardUnsaved() }

  /// Makes a read-only store writable.
  package func allowWriting(durability: Durability) {
    access.withLock { $0 = (false, durability != .none) }
    home.allowWriting(durability)
  }

  /// Whether the files are encrypted.
  package var isEncrypted: Bool { keys != nil }

  // MARK: Names

  /// Returns the name of a blob's file. The name of an encrypted blob reveals nothing without the key.
  package func fileName(of digest: BlobDigest) throws -> String {
    try keys?.fileName(of: digest) ?? digest.fileName
  }

  func path(of digest: BlobDigest) throws -> String { home.place(of: try fileName(of: digest)) }

  /// Returns whether this can be the name of a blob's file.
  package func isBlob(fileName: String) -> Bool {
    guard isEncrypted else { return BlobDigest(fileName: fileName) != nil }
    return fileName.utf8.count == 43 + SealedFormat.fileSuffix.utf8.count
      && fileName.hasSuffix(SealedFormat.fileSuffix)
  }

  // MARK: Reading

  /// Opens a blob for reading. Throws `notFound` when there is none, and `damaged` when its file isn't a
  /// valid blob.
  package func open(_ digest: BlobDigest) throws -> BlobReader {
    let name = try fileName(of: digest)
    do { return try open(fileName: name, digest) } catch let error as StorageError
      where error.code == .notFound
    {
      if let new = unsaved.withLock({ $0.blobs[digest]?.bytes }) {
        return try BlobReader(new.open(), at: new.place, digest: digest, keys: keys)
      }
      throw StorageError(.notFound, "there is no blob \(digest)", path: home.place(of: name))
    }
  }

  /// Opens the blob in the file with this name, which is `digest` if that is known.
  func open(fileName: String, _ digest: BlobDigest? = nil) throws -> BlobReader {
    try BlobReader(
      home.open(fileName), at: home.place(of: fileName), digest: digest ?? BlobDigest(fileName: fileName),
      keys: keys)
  }

  /// Returns the length of a blob in bytes, computed from the length of its file. Nil if there is none, 0 if
  /// the length of an encrypted blob's file is invalid.
  package func length(of digest: BlobDigest) throws -> UInt64? {
    if let file = try home.length(of: try fileName(of: digest)) { return blobLength(ofFile: file) ?? 0 }
    return unsaved.withLock { $0.blobs[digest]?.length }
  }

  func blobLength(ofFile length: UInt64) -> UInt64? {
    isEncrypted ? SealedFormat.blobLength(ofFile: length) : length
  }

  /// Returns whether the blob is stored, or new and not saved yet.
  package func contains(_ digest: BlobDigest) throws -> Bool { try length(of: digest) != nil }

  /// Returns all bytes of a blob and checks them against its digest. Throws `valueTooLarge` when there are
  /// more than `limit`.
  package func contents(of digest: BlobDigest, limit: UInt64 = 1 << 31) throws -> [UInt8] {
    let reader = try open(digest)
    guard reader.length <= limit else {
      throw StorageError(
        .valueTooLarge,
        "the blob \(digest) has \(reader.length) bytes, more than the limit; read it in parts",
        path: directory)
    }
    return try reader.read(upTo: Int(reader.length))
  }

  /// Keeps all blobs from being removed by any process until the hold ends or is released. Nil without blobs. A snapshot that is taken
  /// after this call names only blobs that stay.
  package func hold() throws -> (any BlobHold)? { try home.hold() }

  // MARK: Files

  /// A file in the directory with the name of a blob.
  package struct File: Sendable {
    /// The file's name in the directory.
    package let name: String
    /// The length of the file in bytes. The file of an encrypted blob is longer than the blob.
    package let bytes: UInt64
  }

  /// Returns the files of all blobs, in no particular order. Empty if there is no directory.
  package func files() throws -> [File] {
    try home.files().filter { isBlob(fileName: $0.name) }.map { File(name: $0.name, bytes: $0.bytes) }
  }

  /// Returns the names of all entries of the directory, blobs and others; none if there is no directory.
  package func names() throws -> [String] { try home.names() }

  /// Reads and verifies the whole file with this name. Returns its blob. Throws `damaged`.
  package func verify(fileName: String) throws -> StoredBlob {
    let reader = try open(fileName: fileName)
    guard try self.fileName(of: reader.digest) == fileName else {
      throw StorageError(
        .damaged, "the file contains another blob, \(reader.digest)", path: home.place(of: fileName))
    }
    try reader.verify()
    return StoredBlob(digest: reader.digest, length: reader.length)
  }
}
