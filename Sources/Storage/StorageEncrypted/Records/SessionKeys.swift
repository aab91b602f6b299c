import Encryption
import Storage

/// The session keys of a file. A key is derived at its first use.
final class SessionKeys: Sendable {
  private let fileKey: SecretBytes
  private let fileID: [UInt8]
  private let keys = Lock<[SessionID: SecretBytes]>([:])
  /// The maximum number of stored keys. When it is reached, all keys are dropped and derived again when
  /// needed.
  private static let maximumKept = 10_000

  init(dataKey: SecretBytes, fileID: [UInt8]) throws {
    self.fileID = fileID
    fileKey = try dataKey.subkey(for: "touchstone lmdb file 1", salt: fileID)
  }

  func key(of session: SessionID) throws -> SecretBytes {
    if let key = keys.withLock({ $0[session] }) { return key }
    let key = try fileKey.subkey(for: "touchstone lmdb session 1", salt: fileID + session.bytes)
    keys.withLock { keys in
      if keys.count >= Self.maximumKept { keys.removeAll() }
      keys[session] = key
    }
    return key
  }
}
