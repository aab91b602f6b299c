/// The tree of a keyspace in one state of the file.
struct Tree: Equatable {
  /// Refers to nothing if the height is 0.
  var root = Reference(number: 0, seal: Seal(session: 0, middle: 0, nonce: 0))
  /// The number of levels.
  var height = 0
  var count = 0
  /// The number of entries whose values are stored in chunks.
  var large = 0
}
