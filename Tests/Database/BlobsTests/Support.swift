import Encryption
import TestSupport

@testable import Blobs

func dataKey(_ byte: UInt8 = 7) -> SecretBytes { SecretBytes([UInt8](repeating: byte, count: 32)) }

func makeStore(_ directory: TemporaryDirectory, encrypted: Bool, isReadOnly: Bool = false) throws -> BlobStore
{
  try BlobStore(
    directory: directory.path + "/Attachments", dataKey: encrypted ? dataKey() : nil, isReadOnly: isReadOnly,
    durability: .none)
}

extension BlobStore {
  func store(_ bytes: [UInt8]) throws -> StoredBlob { try bytes.withUnsafeBytes { try store($0) } }

  /// Stores bytes as a save would: in place and known to be there.
  func save(_ bytes: [UInt8]) throws -> BlobDigest {
    let digest = try store(bytes).digest
    _ = try install(digest)
    commit([digest])
    return digest
  }
}
