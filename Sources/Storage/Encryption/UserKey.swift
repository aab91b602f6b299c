import Storage

/// The key with which a user opens an encrypted database: a passphrase or 32 bytes.
///
/// It doesn't encrypt data. It unwraps the database's data key (`KeyFile`).
public struct UserKey: Sendable, CustomStringConvertible {
  enum Kind: Sendable {
    /// A passphrase can be guessed, so it is stretched before use.
    case passphrase
    /// 32 bytes from a random generator, used without stretching.
    case raw
  }

  let kind: Kind
  let secret: SecretBytes

  /// The length of a raw key in bytes.
  public static let rawKeyBytes = 32
  /// The maximum length of a passphrase in bytes of UTF-8.
  public static let maximumPassphraseBytes = 1_024

  /// Creates a key from a passphrase of 1 to 1,024 bytes of UTF-8, which isn't trimmed or normalized. Throws
  /// `invalidKey` for any other length.
  public static func passphrase(_ text: String) throws -> UserKey {
    var bytes = Array(text.utf8)
    defer { SecretBytes.wipe(&bytes) }
    return try passphrase(bytes[...])
  }

  /// Creates a key from 32 random bytes. Throws `invalidKey` for any other number of bytes.
  public static func raw(_ bytes: some Collection<UInt8>) throws -> UserKey {
    guard bytes.count == rawKeyBytes else {
      throw EncryptionError(.invalidKey, "a raw key has \(rawKeyBytes) bytes, not \(bytes.count)")
    }
    return UserKey(kind: .raw, secret: SecretBytes(bytes))
  }

  /// Creates a random raw key.
  public static func random() throws -> UserKey {
    UserKey(kind: .raw, secret: try .random(count: rawKeyBytes))
  }

  /// Creates a key from the contents of a file, by these rules:
  ///
  /// 1. A line of text that ends with a newline is a passphrase without that newline (`\n` or `\r\n`).
  /// 2. Exactly 32 bytes, text or not, are a raw key.
  /// 3. A line of text without a newline is a passphrase.
  ///
  /// So a passphrase of 32 bytes needs its newline. Text is UTF-8 without control characters. A random raw
  /// key is text by chance once in 10^16. Any other contents throw `invalidKey`.
  public init(fileContents: some Collection<UInt8>) throws {
    var bytes = Array(fileContents)
    defer { SecretBytes.wipe(&bytes) }
    let newline = UInt8(ascii: "\n")
    var line = bytes[...]
    if line.last == newline {
      line.removeLast()
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
    }
    let isText = Self.isText(line)
    if bytes.count == Self.rawKeyBytes && !(isText && bytes.last == newline) {
      self = try .raw(bytes)
    } else if isText {
      self = try .passphrase(line)
    } else {
      throw EncryptionError(
        .invalidKey,
        "the key file has \(bytes.count) bytes; a key is \(Self.rawKeyBytes) raw bytes or one line of text")
    }
  }

  /// Creates a key from the file at `path`, by the rules of `init(fileContents:)`. Throws `invalidKey`, or a
  /// `StorageError` when the file can't be read.
  public init(contentsOfFile path: String) throws {
    var bytes = try AtomicFile.read(path, limit: 4_096, mayBePipe: true)
    defer { SecretBytes.wipe(&bytes) }
    do { self = try UserKey(fileContents: bytes) } catch let error as EncryptionError { throw error.at(path) }
  }

  private init(kind: Kind, secret: SecretBytes) {
    self.kind = kind
    self.secret = secret
  }

  private static func passphrase(_ bytes: ArraySlice<UInt8>) throws -> UserKey {
    guard !bytes.isEmpty else { throw EncryptionError(.invalidKey, "the passphrase is empty") }
    guard bytes.count <= maximumPassphraseBytes else {
      throw EncryptionError(
        .invalidKey, "a passphrase has at most \(maximumPassphraseBytes) bytes, not \(bytes.count)")
    }
    return UserKey(kind: .passphrase, secret: SecretBytes(bytes))
  }

  private static func isText(_ bytes: ArraySlice<UInt8>) -> Bool {
    !bytes.contains { $0 < 0x20 || $0 == 0x7F }
      && bytes.withUnsafeBufferPointer { String(validating: $0, as: UTF8.self) != nil }
  }

  /// Whether the key is raw: 32 random bytes, not a passphrase.
  public var isRaw: Bool { kind == .raw }

  /// The raw key, or the passphrase's UTF-8. For databases of other formats, which derive their keys by other
  /// rules.
  package var secretBytes: SecretBytes { secret }

  /// The kind of the key, and none of its bytes.
  public var description: String { kind == .raw ? "UserKey(raw)" : "UserKey(passphrase)" }
}
