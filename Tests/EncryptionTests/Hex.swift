import Encryption

/// The bytes that pairs of hexadecimal digits say; blanks and line ends between them are skipped.
func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap { $0.hexDigitValue.map { UInt8($0) } }
  return stride(from: 0, to: digits.count, by: 2).map { (index: Int) -> UInt8 in
    digits[index] << 4 | digits[index + 1]
  }
}

func bytes(of secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { [UInt8]($0) } }
