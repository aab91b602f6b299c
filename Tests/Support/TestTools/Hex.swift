@_exported import func StorageConformance.hexadecimal

/// The bytes that pairs of hexadecimal digits say; blanks and line ends between them are skipped.
package func hex(_ text: String) -> [UInt8] {
  let digits = text.compactMap { $0.hexDigitValue.map { UInt8($0) } }
  return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}
