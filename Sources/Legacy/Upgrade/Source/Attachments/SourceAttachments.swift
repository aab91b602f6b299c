import Blobs
import Bytes
import Documents
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The attachments of a source. Finds their files, and makes blobs of them or compares them with blobs.
final class SourceAttachments {
  /// The properties of an attachment that describe its file.
  struct Stored: Hashable {
    /// The digest of the file's contents after decryption.
    var digest: BlobDigest
    var isCompressed: Bool
  }

  /// The result for an attachment.
  enum Outcome {
    /// A blob with the attachment's own digest and this length.
    case carried(length: UInt64)
    /// A blob of the decoded bytes.
    case decoded(BlobDigest, length: UInt64)
    case missing
    case damaged(String)
  }

  private let directories: [String]
  private let key: SecretBytes?
  /// The directories whose files are encrypted.
  private let encrypted: Set<String>
  private let blobs: BlobStore
  private var outcomes: [Stored: Outcome] = [:]
  private var hasForgotten = false
  /// The maximum number of remembered outcomes. It bounds memory; forgotten attachments are looked up in the
  /// store again.
  private static let remembered = 200_000
  private(set) var counts = UpgradeReport.Attachments()

  init(_ source: any Source, _ store: DocumentStore) throws {
    guard let blobs = store.blobs else {
      throw StorageError(.unsupported, "the upgrade needs a directory for blobs")
    }
    directories = source.location.attachmentDirectories.filter { SourceFiles.kind($0) == S_IFDIR }
    key = source.key
    self.blobs = blobs
    encrypted = Set(directories.filter { SourceFiles.kind($0 + "/_encryption") != nil })
  }

  /// Makes a blob of an attachment, once. `limit` is the maximum number of bytes after decoding.
  func carry(_ stored: Stored, limit: UInt64) throws -> Outcome {
    if let outcome = outcomes[stored] { return outcome }
    let isNew = outcomes.count < Self.remembered
    if !isNew {
      outcomes.removeAll(keepingCapacity: true)
      hasForgotten = true
    }
    let outcome = try store(stored, limit: limit)
    outcomes[stored] = outcome
    counts.read += 1
    switch outcome {
    case .carried(let length):
      counts.carried += 1
      counts.bytes += length
    case .decoded(_, let length):
      counts.carried += 1
      counts.decoded += 1
      counts.bytes += length
    case .missing: counts.missing += 1
    case .damaged: counts.damaged += 1
    }
    return outcome
  }

  private func store(_ stored: Stored, limit: UInt64) throws -> Outcome {
    if !stored.isCompressed, let length = try blobs.length(of: stored.digest) {
      return .carried(length: length)
    }
    guard let (path, isEncrypted) = find(stored.digest) else { return .missing }
    var outcome = try store(stored, path, isEncrypted ? key : nil, limit)
    if case .damaged = outcome, !isEncrypted, key != nil {
      // The marker of an encrypted directory may be lost.
      let second = try store(stored, path, key, limit)
      if case .damaged = second {} else { outcome = second }
    }
    return outcome
  }

  private func store(_ stored: Stored, _ path: String, _ key: SecretBytes?, _ limit: UInt64) throws -> Outcome
  {
    let writer = try blobs.makeWriter()
    let file = AttachmentFile(path: path, key: key, isCompressed: stored.isCompressed)
    let digest: BlobDigest?
    do {
      // The writer computes the digest of a file that isn't compressed.
      digest = try file.read(hashes: stored.isCompressed, limit: limit) { try writer.write($0) }
    } catch let fault as AttachmentFile.Fault {
      return .damaged(fault.message)
    }
    let blob = try writer.finish()
    guard (digest ?? blob.digest) == stored.digest else {
      blobs.discard(blob)
      return .damaged("the bytes of its file don't match its digest")
    }
    try blobs.place(blob)
    if key != nil { counts.decrypted += 1 }
    return stored.isCompressed ? .decoded(blob.digest, length: blob.length) : .carried(length: blob.length)
  }

  /// Returns the outcome that an attachment must have in the result. It is computed again from the file, for
  /// the comparison.
  func expected(_ stored: Stored, limit: UInt64) throws -> Outcome {
    if let outcome = outcomes[stored] { return outcome }
    if outcomes.count >= Self.remembered { outcomes.removeAll(keepingCapacity: true) }
    let outcome = try lookAgain(stored, limit: limit)
    outcomes[stored] = outcome
    return outcome
  }

  private func lookAgain(_ stored: Stored, limit: UInt64) throws -> Outcome {
    guard let (path, isEncrypted) = find(stored.digest) else { return .missing }
    var outcome = Outcome.damaged("the bytes of its file don't match its digest")
    for key in isEncrypted ? [key] : key == nil ? [nil] : [nil, key] {
      let file = AttachmentFile(path: path, key: key, isCompressed: stored.isCompressed)
      let hash = try BlobHash()
      do {
        let digest = try file.read(hashes: stored.isCompressed, limit: limit) { try hash.update($0) }
        let decoded = try hash.finish()
        guard (digest ?? decoded.digest) == stored.digest else { continue }
        outcome =
          stored.isCompressed
          ? .decoded(decoded.digest, length: decoded.length) : .carried(length: decoded.length)
        break
      } catch let fault as AttachmentFile.Fault {
        outcome = .damaged(fault.message)
      }
    }
    return outcome
  }

  /// Whether the result has the whole blob.
  func isWhole(_ digest: BlobDigest, length: UInt64) throws -> Bool {
    do {
      let found = try blobs.verify(fileName: try blobs.fileName(of: digest))
      return found.digest == digest && found.length == length
    } catch let error as StorageError where [.notFound, .damaged].contains(error.code) { return false }
  }

  /// The number of files that no attachment has named; 0 if there are too many attachments to know.
  var unusedFiles: Int {
    guard !hasForgotten else { return 0 }
    let used = Set(outcomes.keys.map { Hex.text($0.digest.bytes) })
    return directories.reduce(0) { sum, directory in
      sum
        + SourceFiles.names(in: directory).count(where: {
          $0.hasSuffix(".blob") && !used.contains($0.dropLast(".blob".count).lowercased())
        })
    }
  }

  private func find(_ digest: BlobDigest) -> (path: String, isEncrypted: Bool)? {
    guard !directories.isEmpty else { return nil }
    let names = [Hex.text(digest.bytes, isUpper: true), Hex.text(digest.bytes)]
    for directory in directories {
      for name in names {
        let path = "\(directory)/\(name).blob"
        if SourceFiles.kind(path) == S_IFREG { return (path, encrypted.contains(directory)) }
      }
    }
    return nil
  }
}
