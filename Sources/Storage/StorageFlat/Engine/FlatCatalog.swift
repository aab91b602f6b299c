import Storage

/// The keyspaces of a snapshot.
struct FlatCatalog: Sendable {
  var keyspaces: [String: Keyspace] = [:]
  /// The names of the keyspaces by their numbers.
  var names: [Int: String] = [:]
  var lastNumber = 0
  /// Dropped keyspaces whose entries may still be there.
  var dropped: [Int] = []

  init() {}

  /// Reads the records. Throws `damaged`.
  init(_ read: any FlatRead, path: String) throws {
    let iterator = try read.iterator(from: FlatKey.prefix(0), to: FlatKey.prefix(1))
    defer { iterator.close() }
    var goesOn = try FlatKey.prefix(0).withUnsafeBytes { try iterator.seek($0) }
    while goesOn {
      let (key, value) = try iterator.entry()
      let own = key.ownKey
      switch own.first {
      case UInt8(ascii: "k"):
        let name = String(decoding: own.dropFirst(), as: UTF8.self)
        guard let number = value.number(UInt32.self), value.count == 5,
          let shape = KeyspaceShape(rawValue: value[4]), names[Int(number)] == nil
        else { throw Self.damaged("the record of the keyspace \"\(name)\"", path) }
        keyspaces[name] = Keyspace(number: Int(number), shape: shape)
        names[Int(number)] = name
      case UInt8(ascii: "n"):
        guard let number = value.number(UInt32.self) else {
          throw Self.damaged("the last number of a keyspace", path)
        }
        lastNumber = Int(number)
      case UInt8(ascii: "d"):
        guard let number = own.number(UInt32.self, at: 1) else {
          throw Self.damaged("the record of a dropped keyspace", path)
        }
        dropped.append(Int(number))
      case UInt8(ascii: "c"): break
      default: throw Self.damaged("a record of an unknown kind", path)
      }
      goesOn = try iterator.next()
    }
    guard names.keys.allSatisfy({ 1...lastNumber ~= $0 }) || names.isEmpty else {
      throw Self.damaged("the number of a keyspace", path)
    }
  }

  static func damaged(_ what: String, _ path: String) -> StorageError {
    StorageError(.damaged, "\(what) can't be read", path: path)
  }

  mutating func add(_ name: String, _ shape: KeyspaceShape) -> Keyspace {
    lastNumber += 1
    let keyspace = Keyspace(number: lastNumber, shape: shape)
    keyspaces[name] = keyspace
    names[lastNumber] = name
    return keyspace
  }

  /// Returns the name of the removed keyspace.
  mutating func remove(_ number: Int) -> String? {
    guard let name = names.removeValue(forKey: number) else { return nil }
    keyspaces[name] = nil
    dropped.append(number)
    return name
  }
}
