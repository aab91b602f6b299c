/// The random ID of a session, which has its own key. A session is the use of a file by one process, up to
/// 2^40 records.
struct SessionID: Hashable {
  var high: UInt64
  var low: UInt32

  static let byteCount = 12

  /// The bytes as stored in a seal.
  var bytes: [UInt8] {
    withUnsafeBytes(of: high.littleEndian) { high in
      withUnsafeBytes(of: low.littleEndian) { [UInt8](high) + [UInt8]($0) }
    }
  }
}
