/// What a deep check of an encrypted database reports for each of its files.
public struct FileEntropy: Sendable, Hashable, CustomStringConvertible {
  /// The file's path in the database's directory: `data-1.sqlite`, `Attachments/….sealed`.
  public let name: String
  /// The file's size in bytes.
  public let bytes: Int
  /// The entropy in bits per byte: 8 if all 256 values are equally frequent. Nil for files of less than 4,096
  /// bytes, which are too small to judge.
  public let entropy: Double?
  /// The lowest entropy of a 4,096-byte block, in bits per byte. Blocks of zeros aren't counted. Random bytes
  /// have about 7.94.
  public let lowest: Double?
  /// Whether the file holds no data and is therefore not encrypted: the description, the wrapped key, locks,
  /// the index of a log.
  public let isPlain: Bool

  /// The file's name, size and entropy in one line.
  public var description: String {
    let size = "\(name): \(bytes) bytes"
    guard let entropy else { return "\(size), too small to judge" }
    let lowest = lowest.map { ", at least \(Self.text($0)) in 4,096 bytes" } ?? ""
    return "\(size), entropy \(Self.text(entropy)) bits per byte\(isPlain ? " (holds no data)" : lowest)"
  }

  private static func text(_ bits: Double) -> String {
    let digits = String(Int((bits * 1_000).rounded()))
    let padded = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return "\(padded.dropLast(3)).\(padded.suffix(3))"
  }
}
