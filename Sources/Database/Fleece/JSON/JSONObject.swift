// The members of an object, by name.
//
// This isn't a Dictionary of String: Swift compares strings by canonical equivalence ("é" as one scalar or as
// two). JSON compares names by their bytes. A plain dictionary would silently merge two properties.

import Synchronization

/// An unordered collection of values by name. Names are equal if their UTF-8 bytes are equal.
public struct JSONObject: Sendable {
  /// A name that is compared and hashed by its bytes.
  fileprivate struct Name: Hashable, Sendable {
    let string: String

    static func == (left: Name, right: Name) -> Bool { left.string.hasSameBytes(as: right.string) }

    func hash(into hasher: inout Hasher) { string.hashBytes(into: &hasher) }
  }

  fileprivate var members: [Name: JSONValue]
  /// Where the content of the blob is that this object refers to. It isn't a part of the value: it goes where
  /// the object goes, and comparisons ignore it.
  package private(set) var contentSource: (any AnyObject & Sendable)?

  /// Creates an object without members.
  public init() { members = [:] }

  /// Creates an object with these members.
  public init(_ members: [String: JSONValue]) {
    self.init()
    self.members.reserveCapacity(members.count)
    for (name, value) in members { self.members[Name(string: name)] = value }
  }

  /// Creates an object with these members. If several members have the same name, the last one wins.
  public init(_ members: some Sequence<(String, JSONValue)>) {
    self.init()
    for (name, value) in members { self.members[Name(string: name)] = value }
  }

  /// The number of members.
  public var count: Int { members.count }

  /// Remembers where the content of the blob is that this object refers to.
  package mutating func setContentSource(_ source: any AnyObject & Sendable) {
    if !Self.anyHasSource.load(ordering: .relaxed) { Self.anyHasSource.store(true, ordering: .relaxed) }
    contentSource = source
  }

  /// Whether any object of this process has a source. Without one, nobody has to look for them.
  package static let anyHasSource = Atomic<Bool>(false)

  /// Whether there is a member with this name.
  func contains(_ name: String) -> Bool { members.index(forKey: Name(string: name)) != nil }

  /// Whether there are no members.
  public var isEmpty: Bool { members.isEmpty }

  /// The names, in no particular order.
  public var keys: [String] { members.keys.map(\.string) }

  /// The values, in no particular order.
  public var values: [JSONValue] { Array(members.values) }

  /// The member with a name, or nil. Setting nil removes the member.
  public subscript(name: String) -> JSONValue? {
    get { members[Name(string: name)] }
    _modify { yield &members[Name(string: name)] }
  }

  /// The member with a name, or `value` if there is none. A change in place starts from `value`.
  public subscript(name: String, default value: @autoclosure () -> JSONValue) -> JSONValue {
    get { members[Name(string: name), default: value()] }
    _modify { yield &members[Name(string: name), default: value()] }
  }

  /// Removes a member and returns it, or returns nil if there is none.
  @discardableResult
  public mutating func removeValue(forKey name: String) -> JSONValue? {
    members.removeValue(forKey: Name(string: name))
  }

  /// Changes the values in place.
  package mutating func changeValues(_ change: (inout JSONValue) -> Void) {
    for index in members.values.indices { change(&members.values[index]) }
  }

  mutating func reserveCapacity(_ count: Int) { members.reserveCapacity(count) }
}

extension JSONObject: Hashable {
  /// Returns whether both have the same members.
  public static func == (left: JSONObject, right: JSONObject) -> Bool { left.members == right.members }

  /// Hashes the members.
  public func hash(into hasher: inout Hasher) { hasher.combine(members) }
}

extension JSONObject: Sequence {
  /// Iterates over the members in no particular order.
  public struct Iterator: IteratorProtocol {
    fileprivate var members: Dictionary<Name, JSONValue>.Iterator

    /// Returns the next member, or nil after the last one.
    public mutating func next() -> (key: String, value: JSONValue)? {
      members.next().map { ($0.key.string, $0.value) }
    }
  }

  /// Iterates over the members in no particular order.
  public func makeIterator() -> Iterator { Iterator(members: members.makeIterator()) }
}

extension JSONObject: ExpressibleByDictionaryLiteral {
  /// Creates an object with these members. If several members have the same name, the last one wins.
  public init(dictionaryLiteral elements: (String, JSONValue)...) { self.init(elements) }
}

extension String {
  /// Returns whether both strings have the same UTF-8 bytes. This is stricter than `==`.
  func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  func hashBytes(into hasher: inout Hasher) {
    var copy = self
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}
