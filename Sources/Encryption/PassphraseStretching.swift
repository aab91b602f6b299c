/// How much work it is to try one passphrase: the parameters of scrypt (RFC 7914).
///
/// They are in the key file, so that each file opens with its own, and a file is given others by wrapping its key anew.
public struct PassphraseStretching: Hashable, Sendable {
  let derivation: KeyDerivation

  /// n 65,536, r 8, p 1: 64 MiB and about 0.1 s.
  public static let standard = PassphraseStretching(derivation: .standardScrypt)

  private init(derivation: KeyDerivation) { self.derivation = derivation }

  /// More, or less, work than the standard. It takes 128 · n · r bytes of memory.
  ///
  /// Throws `invalidKey` when n isn't a power of two, something is 0, or n · r · p is above 4,194,304 (512 MiB, about a
  /// second): no release would open that.
  public init(n: UInt64, r: UInt64 = 8, p: UInt64 = 1) throws {
    derivation = .scrypt(n: n, r: r, p: p)
    guard derivation.isAcceptable else {
      throw EncryptionError(.invalidKey, "scrypt can't be used with n \(n), r \(r), p \(p)")
    }
  }
}
