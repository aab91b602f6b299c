import Encryption
import Foundation
import Storage

@testable import Blobs

/// A directory of its own for one test, removed afterwards.
final class TemporaryDirectory: Sendable {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "blobs-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A reproducible source of random numbers (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { buffer in
      var index = 0
      while index + 8 <= count {
        buffer.storeBytes(of: next(), toByteOffset: index, as: UInt64.self)
        index += 8
      }
      while index < count {
        buffer[index] = UInt8(truncatingIfNeeded: next())
        index += 1
      }
    }
    return bytes
  }
}

/// The seed of all random tests of this process: TOUCHSTONE_SEED repeats one.
let testSeed: UInt64 = {
  let seed =
    ProcessInfo.processInfo.environment["TOUCHSTONE_SEED"].flatMap(UInt64.init)
    ?? UInt64.random(in: 0..<1_000_000_000)
  print("random tests run with TOUCHSTONE_SEED=\(seed)")
  return seed
}()

let isLong = ProcessInfo.processInfo.environment["TOUCHSTONE_LONG"] != nil

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

func storageCode(of body: () throws -> Void) -> StorageError.Code? {
  do {
    try body()
    return nil
  } catch { return (error as? StorageError)?.code }
}
