import Storage

/// Bodies of peers that take many times their length while they are read. One is at a time in the whole process, so that no number of
/// connections makes that a number of times.
enum LargeBodies {
  /// Bodies with more bytes are large.
  static let bytes = 64 << 10
  /// Takes them apart.
  static let workers = Workers()
}
