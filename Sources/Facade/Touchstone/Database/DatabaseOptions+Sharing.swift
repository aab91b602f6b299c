/// Options that have to be equal in all opens of one path.
extension DatabaseOptions {
  /// The same options without the user's key.
  var withoutKey: DatabaseOptions {
    var options = self
    options.key = nil
    return options
  }

  /// Returns the first option that differs between two opens that share an engine and write: its name and
  /// both values. Nil if there is none.
  func firstDifference(from other: DatabaseOptions) -> (name: String, left: String, right: String)? {
    func text<Value>(_ value: Value?) -> String { value.map { "\($0)" } ?? "nil" }
    let options: [(name: String, left: String, right: String)] = [
      ("durability", durability.rawValue, other.durability.rawValue),
      ("maximumTreeDepth", text(depth), text(other.depth)),
      ("keepsReplacedBodies", text(keepsReplacedBodies), text(other.keepsReplacedBodies)),
      ("verifiesChecksums", text(verifiesChecksums), text(other.verifiesChecksums)),
      ("compaction", text(compaction), text(other.compaction)),
      ("cacheBytes", text(cacheBytes), text(other.cacheBytes)),
      ("compression", text(compression), text(other.compression)),
      ("libraryPath", text(libraryPath), text(other.libraryPath)),
    ]
    return options.first { !$0.left.utf8.elementsEqual($0.right.utf8) }
  }

  /// Nil means the value stored in the database.
  private var depth: Int? { maximumTreeDepth.flatMap { $0 < 1 ? nil : $0 } }
}
