/// What a deep check of an encrypted database says of each of its files, sound or not.
public struct FileEntropy: Sendable, Hashable, CustomStringConvertible {
  /// The file's name in the database's directory: `data-1.sqlite`, `Attachments/….sealed`.
  public let name: String
  /// How long it is, in bytes.
  public let bytes: Int
  /// Bits a byte: 8 when all 256 values are equally frequent. Nil for a file of less than 4,096 bytes, too small to tell.
  public let entropy: Double?
  /// Bits a byte of the 4,096 in a row that have least, those left out that are all zeros; 7.94 or so in random bytes.
  public let lowest: Double?
  /// Whether it holds no data and isn't encrypted: the description, the wrapped key, locks, the index of a log.
  public let isPlain: Bool

  /// In one line.
  public var description: String {
    let size = "\(name): \(bytes) bytes"
    guard let entropy else { return "\(size), too small to judge" }
    let lowest = lowest.map { ", at least \(Self.text($0)) in 4,096 bytes" } ?? ""
    return "\(size), entropy \(Self.text(entropy)) bits a byte\(isPlain ? " (holds no data)" : lowest)"
  }

  private static func text(_ bits: Double) -> String {
    let digits = String(Int((bits * 1_000).rounded()))
    let padded = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return "\(padded.dropLast(3)).\(padded.suffix(3))"
  }
}
