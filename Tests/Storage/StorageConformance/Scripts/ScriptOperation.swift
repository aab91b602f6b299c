import Storage

/// An operation of a script's transaction. Its arguments are numbers, from which keys and values are made at
/// run time. Scripts can therefore be printed and shrunk.
enum ScriptOperation: Sendable {
  case createKeyspace(name: Int, KeyspaceShape)
  case dropKeyspace(name: Int)
  case put(name: Int, key: ScriptKey, ScriptValue)
  case insert(name: Int, key: ScriptKey, ScriptValue)
  case append(name: Int, key: ScriptKey, ScriptValue)
  /// Loads the entries that are after all existing ones, in order.
  case load(name: Int, [ScriptEntry], ScriptLoadEnd)
  case delete(name: Int, key: ScriptKey)
  case deleteRange(name: Int, ScriptRange)
  /// Checks that a key of `bytes` bytes is refused as invalid.
  case refuseKey(name: Int, bytes: Int)
  case read(name: Int, key: ScriptKey)
  case scan(name: Int, ScriptRange, ScanOrder, ScanFetch, limit: Int)
  /// Moves a cursor randomly, with a generator of that seed.
  case walk(name: Int, ScriptRange, seed: UInt64, steps: Int)
  /// Nested scans. Each one stops at an entry and checks it again after the inner scans.
  case nest(names: [Int], seed: UInt64)

  /// The keyspaces that it uses.
  var names: [Int] {
    switch self {
    case .createKeyspace(let name, _), .dropKeyspace(let name), .put(let name, _, _), .insert(let name, _, _),
      .append(let name, _, _), .load(let name, _, _), .delete(let name, _), .deleteRange(let name, _),
      .refuseKey(let name, _),
      .read(let name, _), .scan(let name, _, _, _, _), .walk(let name, _, _, _):
      [name]
    case .nest(let names, _): names
    }
  }
}

/// How a load ends.
enum ScriptLoadEnd: Sendable {
  case well
  /// With the last key repeated.
  case outOfOrder
  /// With an error thrown by its body.
  case thrown
}

/// An entry to write.
struct ScriptEntry: Sendable {
  let key: ScriptKey
  let value: ScriptValue
}

extension ScriptEntry: CustomStringConvertible {
  var description: String { "\(key) of \(value)" }
}

/// A key, made from a number: short keys in no order, long keys, and the 8 bytes of a sequence.
struct ScriptKey: Sendable {
  let number: Int

  func bytes(_ shape: KeyspaceShape) -> [UInt8] {
    var generator = SeededGenerator(seed: UInt64(number))
    if shape == .sequences {
      // Mostly small sequences. Some are at the upper end, up to the greatest one.
      let far = number % 16 == 15
      return sequenceKey(far ? UInt64(Int64.max) - UInt64(number / 16) : UInt64(number))
    }
    switch number % 16 {
    case 0: return generator.bytes(StorageLimits.maximumKeyBytes)
    case 1:
      // Long keys that differ only at their ends.
      return [UInt8](repeating: 0x61, count: 480) + generator.bytes(1 + generator.below(31))
    case 2: return generator.bytes(1 + generator.below(StorageLimits.maximumKeyBytes))
    default:
      let bytes: [UInt8] = [0, 1, 0x61, 0x62, 0x7F, 0x80, 0xFE, 0xFF]
      return (0...generator.below(4)).map { _ in generator.pick(bytes) }
    }
  }
}

extension ScriptKey: CustomStringConvertible {
  var description: String { "#\(number)" }
}

/// A value: its length, and its start in a table of random bytes.
struct ScriptValue: Sendable {
  let count: Int
  let start: Int

  private static let table: [UInt8] = {
    var generator = SeededGenerator(seed: 7)
    return generator.bytes(65_537)
  }()

  /// The bytes, at most `limit`.
  func bytes(limit: Int) -> [UInt8] {
    let count = min(count, limit)
    var result: [UInt8] = []
    result.reserveCapacity(count)
    var place = start % Self.table.count
    while result.count < count {
      let end = min(Self.table.count, place + count - result.count)
      result += Self.table[place..<end]
      place = 0
    }
    return result
  }
}

extension ScriptValue: CustomStringConvertible {
  var description: String { "\(count) bytes" }
}

/// A range by the keys of its bounds. An inverted range is empty.
struct ScriptRange: Sendable {
  enum Bound: Sendable {
    case unbounded
    case inclusive(ScriptKey)
    case exclusive(ScriptKey)
  }
  let lower: Bound
  let upper: Bound
  /// If set, the range has the keys that begin with this many bytes of the lower bound.
  let prefix: Int?

  func range(_ shape: KeyspaceShape) -> KeyRange {
    func bound(_ bound: Bound) -> KeyRange.Bound {
      switch bound {
      case .unbounded: .unbounded
      case .inclusive(let key): .inclusive(key.bytes(shape))
      case .exclusive(let key): .exclusive(key.bytes(shape))
      }
    }
    if let prefix {
      switch lower {
      case .inclusive(let key), .exclusive(let key): return .prefix(Array(key.bytes(shape).prefix(prefix)))
      case .unbounded: break
      }
    }
    return KeyRange(lower: bound(lower), upper: bound(upper))
  }
}

extension ScriptRange: CustomStringConvertible {
  var description: String {
    func text(_ bound: Bound, _ sign: String) -> String {
      switch bound {
      case .unbounded: ""
      case .inclusive(let key): "\(sign)=\(key)"
      case .exclusive(let key): "\(sign)\(key)"
      }
    }
    if let prefix { return "\(prefix) bytes of \(text(lower, ""))" }
    return "\(text(lower, ">")) \(text(upper, "<"))"
  }
}
