/// The cost of trying one passphrase: the parameters of scrypt (RFC 7914).
///
/// They are stored in the key file, so each file opens with its own parameters. Wrapping the key again
/// changes them.
public struct PassphraseStretching: Hashable, Sendable {
  let derivation: KeyDerivation

  /// n = 65,536, r = 8, p = 1: 64 MiB and about 0.1 s.
  public static let standard = PassphraseStretching(derivation: .standardScrypt)

  private init(derivation: KeyDerivation) { self.derivation = derivation }

  /// Creates parameters that cost more or less than the standard. Stretching takes 128 · n · r bytes of
  /// memory.
  ///
  /// Throws `invalidKey` when n isn't a power of two, when r or p is 0, or when n · r · p is above 4,194,304
  /// (512 MiB, about a second). No release would open such a file. With r = 1, n must be below 65,536 (RFC
  /// 7914). Throws it too when n · r is below 131,072 (16 MiB), which makes guessing cheap.
  public init(n: UInt64, r: UInt64 = 8, p: UInt64 = 1) throws {
    derivation = .scrypt(n: n, r: r, p: p)
    guard derivation.isAcceptable else {
      throw EncryptionError(
        .invalidKey,
        "scrypt doesn't accept the parameters n \(n), r \(r), p \(p); n must be a power of two, and n * r * p at most 4,194,304"
      )
    }
    guard n * r >= Self.leastMemoryCost else {
      throw EncryptionError(
        .invalidKey,
        "scrypt with n \(n) and r \(r) makes passphrases too cheap to guess; n * r must be at least \(Self.leastMemoryCost) (16 MiB)"
      )
    }
  }

  /// The least n * r of new files. Files with less are read.
  private static let leastMemoryCost: UInt64 = 131_072
}
