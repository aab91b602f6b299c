// The members of an object, by name.
//
// Why not a Dictionary of String: Swift's strings are equal when they are canonically equivalent ("é" in one
// scalar or in two), JSON's names when their bytes are. A plain dictionary would silently merge two properties.

/// An unordered collection of values by name; names are the same when their UTF-8 bytes are.
public struct JSONObject: Sendable {
  /// A name that is compared and hashed by its bytes.
  fileprivate struct Name: Hashable, Sendable {
    let string: String

    static func == (left: Name, right: Name) -> Bool { left.string.hasSameBytes(as: right.string) }

    func hash(into hasher: inout Hasher) { string.hashBytes(into: &hasher) }
  }

  fileprivate var members: [Name: JSONValue]

  /// An object without members.
  public init() { members = [:] }

  /// An object of these members.
  public init(_ members: [String: JSONValue]) {
    self.init()
    self.members.reserveCapacity(members.count)
    for (name, value) in members { self.members[Name(string: name)] = value }
  }

  /// An object of these members; of those with one name the last wins.
  public init(_ members: some Sequence<(String, JSONValue)>) {
    self.init()
    for (name, value) in members { self.members[Name(string: name)] = value }
  }

  /// The number of members.
  public var count: Int { members.count }

  /// Whether there are no members.
  public var isEmpty: Bool { members.isEmpty }

  /// The names, in no particular order.
  public var keys: [String] { members.keys.map(\.string) }

  /// The values, in no particular order.
  public var values: [JSONValue] { Array(members.values) }

  /// The member of a name, nil when there is none; setting nil takes it out.
  public subscript(name: String) -> JSONValue? {
    get { members[Name(string: name)] }
    _modify { yield &members[Name(string: name)] }
  }

  /// The member of a name, or a value to use, and to start from when changed in place, when there is none.
  public subscript(name: String, default value: @autoclosure () -> JSONValue) -> JSONValue {
    get { members[Name(string: name), default: value()] }
    _modify { yield &members[Name(string: name), default: value()] }
  }

  /// Takes a member out and returns it, or nil when there is none.
  @discardableResult
  public mutating func removeValue(forKey name: String) -> JSONValue? {
    members.removeValue(forKey: Name(string: name))
  }

  mutating func reserveCapacity(_ count: Int) { members.reserveCapacity(count) }
}

extension JSONObject: Hashable {}

extension JSONObject: Sequence {
  /// Goes through the members in no particular order.
  public struct Iterator: IteratorProtocol {
    fileprivate var members: Dictionary<Name, JSONValue>.Iterator

    /// The next member.
    public mutating func next() -> (key: String, value: JSONValue)? {
      members.next().map { ($0.key.string, $0.value) }
    }
  }

  /// Goes through the members in no particular order.
  public func makeIterator() -> Iterator { Iterator(members: members.makeIterator()) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  /// An object of these members; of those with one name the last wins.
  public init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements) }
}

extension String {
  /// Whether both have the same UTF-8 bytes, which is stricter than Swift's `==`.
  func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  func hashBytes(into hasher: inout Hasher) {
    var copy = self
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}
