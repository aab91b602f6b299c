import Encryption

/// The bytes that pairs of hexadecimal digits say; blanks and line ends between them are skipped.
func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap { $0.hexDigitValue }
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] * 16 + digits[$0 + 1]) }
}

func bytes(of secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { [UInt8]($0) } }
