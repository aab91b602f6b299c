// key.json: the data key of an encrypted database, wrapped under the user's key (docs/encryption.md).
//
//   file     = head checksum
//   head     = "{\n" member ",\n" member … (JSON, two blanks before each member, without the last one's comma)
//   checksum = ",\n  \"checksum\": \"" base64(SHA-256(head)) "\"\n}\n"
//   members  = "version": 1
//              "cipher": "AES-256-GCM"
//              "kdf": {"name": "scrypt", "n": n, "r": r, "p": p, "salt": base64(32 bytes)}
//                   | {"name": "HKDF-SHA256", "salt": base64(32 bytes)}
//              "nonce": base64(12 bytes)
//              "wrappedKey": base64(32 bytes of ciphertext, 16 bytes of tag)
//
// The tag also authenticates "touchstone data key", version, cipher, derivation, its parameters and salt
// (`WrappedKey.additionalData`). The checksum distinguishes a damaged file from a wrong key. It is the same
// in every version.

import Storage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The file that contains a database's data key, wrapped under the user's key.
///
/// All data is encrypted with the data key. The user's key only unwraps it. So changing the user's key
/// atomically replaces this small file, and no data is encrypted again.
///
/// Concurrency: the file is replaced as a whole, so a reader sees the old or the new file. The caller must
/// prevent two concurrent writers: the later one wins.
///
/// Errors: `EncryptionError` for problems with a key or with the file's contents, `StorageError` for errors
/// of the file system. Both name the file.
package enum KeyFile {
  /// The name of the file in a database's directory.
  package static let name = "key.json"

  static let dataKeyBytes = 32
  private static let maximumFileBytes = 16_384

  /// Creates a random data key and a file at `path` that wraps it under `key`. Returns the data key. Throws
  /// `alreadyExists` when the file exists.
  package static func create(at path: String, key: UserKey) throws -> SecretBytes {
    let dataKey = try randomDataKey()
    try write(dataKey, to: path, key: key, replacement: .refused)
    return dataKey
  }

  /// Returns a new random data key.
  package static func randomDataKey() throws -> SecretBytes { try .random(count: dataKeyBytes) }

  /// Returns the data key in the file at `path`. With a passphrase it takes about 0.1 s.
  ///
  /// Throws `wrongKey` when the file is intact but `key` isn't its key, `damaged` when the file was changed
  /// since it was written, and `unsupportedVersion` when a later release created it.
  package static func open(at path: String, key: UserKey) throws -> SecretBytes {
    let bytes: [UInt8]
    do { bytes = try AtomicFile.read(path, limit: maximumFileBytes) } catch let error as StorageError {
      guard error.code == .invalidArgument else { throw error }
      throw EncryptionError(.damaged, "this isn't a key file: \(error.message)", path: path)
    }
    do { return try WrappedKey(fileContents: bytes).unwrap(with: key) } catch let error as EncryptionError {
      throw error.at(path)
    }
  }

  /// Wraps the data key under another user's key. Encrypted data isn't changed. Once this returns, only
  /// `newKey` opens it. After an error or a crash, the file is either the old or the new one.
  package static func change(at path: String, from oldKey: UserKey, to newKey: UserKey) throws {
    try write(try open(at: path, key: oldKey), to: path, key: newKey, replacement: .allowed)
  }

  /// Writes a file at `path` that wraps `dataKey` under `key`. For a new data key, or for a copy of a
  /// database that keeps the data key of the original.
  package static func write(
    _ dataKey: SecretBytes, to path: String, key: UserKey, stretching: PassphraseStretching = .standard,
    replacement: AtomicFile.Replacement
  ) throws {
    let wrapped = try WrappedKey(
      dataKey, key: key, derivation: key.kind == .raw ? .hkdfSHA256 : stretching.derivation)
    try AtomicFile.write(try wrapped.fileContents(), to: path, replacement: replacement)
  }
}

/// The contents of a key file.
struct WrappedKey {
  var derivation: KeyDerivation
  var salt: [UInt8]
  var nonce: [UInt8]
  /// The ciphertext and the tag.
  var sealed: [UInt8]

  static let version = 1
  static let cipher = "AES-256-GCM"

  /// Wraps a data key with a new random salt and nonce.
  init(_ dataKey: SecretBytes, key: UserKey, derivation: KeyDerivation) throws {
    guard dataKey.count == KeyFile.dataKeyBytes else {
      throw EncryptionError(.invalidKey, "a data key has \(KeyFile.dataKeyBytes) bytes, not \(dataKey.count)")
    }
    self.derivation = derivation
    salt = [UInt8](repeating: 0, count: KeyDerivation.saltBytes)
    nonce = [UInt8](repeating: 0, count: AES256GCM.nonceBytes)
    sealed = []
    try salt.withUnsafeMutableBytes { try fillRandomly($0) }
    try nonce.withUnsafeMutableBytes { try fillRandomly($0) }
    sealed = try AES256GCM.seal(
      dataKey, key: try wrappingKey(from: key), nonce: nonce, additionalData: additionalData)
  }

  /// Returns the data key. Throws `wrongKey` when `key` isn't the one it was wrapped under.
  func unwrap(with key: UserKey) throws -> SecretBytes {
    // A key of the other kind is always wrong. The derivation itself wouldn't detect that reliably.
    guard (key.kind == .raw) == (derivation == .hkdfSHA256),
      let dataKey = try AES256GCM.open(
        sealed, key: try wrappingKey(from: key), nonce: nonce, additionalData: additionalData)
    else { throw EncryptionError(.wrongKey, "the key doesn't open the database") }
    return dataKey
  }

  private func wrappingKey(from key: UserKey) throws -> SecretBytes {
    try derivation.derive(key.secret, salt: salt, info: Array("touchstone wrapping key".utf8))
  }

  /// The data that the tag authenticates besides the data key: everything that determines how the key is
  /// unwrapped.
  var additionalData: [UInt8] {
    Array("touchstone data key|\(Self.version)|\(Self.cipher)|\(derivationText)".utf8)
  }

  private var derivationText: String {
    let salt = Data(salt).base64EncodedString()
    return switch derivation {
    case .scrypt(let n, let r, let p):
      "{\"name\": \"scrypt\", \"n\": \(n), \"r\": \(r), \"p\": \(p), \"salt\": \"\(salt)\"}"
    case .hkdfSHA256: "{\"name\": \"HKDF-SHA256\", \"salt\": \"\(salt)\"}"
    }
  }
}

// The file format.
extension WrappedKey {
  func fileContents() throws -> [UInt8] {
    let head = """
      {
        "version": \(Self.version),
        "cipher": "\(Self.cipher)",
        "kdf": \(derivationText),
        "nonce": "\(Data(nonce).base64EncodedString())",
        "wrappedKey": "\(Data(sealed).base64EncodedString())"
      """
    return try Self.withChecksum(Array(head.utf8))
  }

  static func withChecksum(_ head: [UInt8]) throws -> [UInt8] {
    head + Array(",\n  \"checksum\": \"\(Data(try sha256(head)).base64EncodedString())\"\n}\n".utf8)
  }

  /// Parses a file's contents. Throws `damaged` or `unsupportedVersion`.
  init(fileContents: [UInt8]) throws {
    let checksumBytes = try Self.withChecksum([]).count
    guard fileContents.count > checksumBytes,
      try fileContents == Self.withChecksum(Array(fileContents.dropLast(checksumBytes)))
    else { throw Self.damaged("its checksum doesn't match its contents; restore it from a backup") }

    struct Version: Decodable { var version: Int }
    struct Contents: Decodable {
      struct Derivation: Decodable {
        var name: String
        var n, r, p: UInt64?
        var salt: String
      }
      var cipher: String
      var kdf: Derivation
      var nonce: String
      var wrappedKey: String
    }
    let contents: Contents
    do {
      let version = try JSONDecoder().decode(Version.self, from: Data(fileContents)).version
      guard version == Self.version else { throw Self.unsupported("version \(version)") }
      contents = try JSONDecoder().decode(Contents.self, from: Data(fileContents))
    } catch is DecodingError { throw Self.damaged("it isn't JSON of the expected form") }

    guard contents.cipher == Self.cipher else { throw Self.unsupported("the cipher '\(contents.cipher)'") }
    switch (contents.kdf.name, contents.kdf.n, contents.kdf.r, contents.kdf.p) {
    case ("scrypt", let n?, let r?, let p?): derivation = .scrypt(n: n, r: r, p: p)
    case ("HKDF-SHA256", nil, nil, nil): derivation = .hkdfSHA256
    case ("scrypt", _, _, _), ("HKDF-SHA256", _, _, _):
      throw Self.damaged("the parameters of its key derivation don't belong to \(contents.kdf.name)")
    default: throw Self.unsupported("the key derivation '\(contents.kdf.name)'")
    }
    guard derivation.isAcceptable else {
      throw Self.damaged("the parameters of its key derivation are out of range (\(derivation))")
    }
    salt = try Self.decode(contents.kdf.salt, count: KeyDerivation.saltBytes, name: "salt")
    nonce = try Self.decode(contents.nonce, count: AES256GCM.nonceBytes, name: "nonce")
    sealed = try Self.decode(
      contents.wrappedKey, count: KeyFile.dataKeyBytes + AES256GCM.tagBytes, name: "wrapped key")
  }

  private static func decode(_ text: String, count: Int, name: String) throws -> [UInt8] {
    guard let data = Data(base64Encoded: text), data.count == count else {
      throw damaged("its \(name) isn't base64 of \(count) bytes")
    }
    return [UInt8](data)
  }

  private static func damaged(_ what: String) -> EncryptionError {
    EncryptionError(.damaged, "the key file is damaged: \(what)")
  }

  private static func unsupported(_ what: String) -> EncryptionError {
    EncryptionError(
      .unsupportedVersion, "the key file has \(what), which this release doesn't support; use a later release"
    )
  }
}
