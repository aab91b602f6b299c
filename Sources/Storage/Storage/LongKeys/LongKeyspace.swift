// An ordered map with keys of up to 1 MiB, in a keyspace whose keys have at most 511 bytes.
//
//   entry    = key                      a key of 1 … 510 bytes, with its value
//            | node rest                a longer key, with its value: rest has 0 … 477 bytes
//            | stem                     keys go on in a node; no value
//   stem     = 511 bytes                its length tells a stem: the first 511 bytes of keys, or
//            | node 478 bytes           478 more bytes of keys
//   node     = FF digest                digest: SHA-256 of the stem that the node's keys begin with
//
// A stem stands where the keys that begin with it stand, so the order of all keys is exact. A node is reached through its
// stem alone. No key begins with FF, so nodes are behind all keys. A node's digest follows from its stem: there is no
// counter, and a key is read without its stems. A stem exists exactly while its node has entries.

/// An ordered map from bytes to bytes over one keyspace of the shape `entries`.
///
/// Keys have 1 byte to `maximumKeyBytes` and don't begin with byte FF. Other keys throw `invalidKey`. Their order is that
/// of their unsigned bytes. Only this type writes to the keyspace. Its methods follow the rules of the transaction that
/// they get: reads lend bytes to a closure, and a write inside such a closure throws `bytesAreLent`.
package struct LongKeyspace: Sendable {
  /// The longest key, in bytes.
  package static let maximumKeyBytes = 1 << 20

  /// The keyspace that holds the entries.
  package let keyspace: Keyspace

  /// A map over a keyspace that is empty or that this type wrote.
  package init(_ keyspace: Keyspace) { self.keyspace = keyspace }

  /// Lends the value at `key` to `body`. Returns false, without calling `body`, if there is no value.
  package func read(
    _ key: RawSpan, in transaction: any ReadTransaction, _ body: (_ value: RawSpan) throws -> Void
  ) throws -> Bool {
    try Self.check(key)
    if key.byteCount <= LongKeyLayout.wholeKeyBytes { return try transaction.read(key, in: keyspace, body) }
    let place = try LongKeyPlace(key)
    return try transaction.read(place.entry, in: keyspace, body)
  }

  /// Sets the value at `key`, and replaces an existing value.
  package func put(_ key: RawSpan, _ value: RawSpan, in transaction: any WriteTransaction) throws {
    try Self.check(key)
    if key.byteCount <= LongKeyLayout.wholeKeyBytes { return try transaction.put(key, value, in: keyspace) }
    let place = try LongKeyPlace(key)
    // From the top, so that no error in between leaves an entry that no stem leads to.
    var missing = place.stemCount
    while missing > 0, try !transaction.contains(place[stem: missing - 1], in: keyspace) { missing -= 1 }
    for index in missing..<place.stemCount {
      try transaction.put(place[stem: index], RawSpan(), in: keyspace)
    }
    try transaction.put(place.entry, value, in: keyspace)
  }

  /// Removes the entry at `key`. Returns false if there is none.
  @discardableResult
  package func delete(_ key: RawSpan, in transaction: any WriteTransaction) throws -> Bool {
    try Self.check(key)
    if key.byteCount <= LongKeyLayout.wholeKeyBytes { return try transaction.delete(key, in: keyspace) }
    let place = try LongKeyPlace(key)
    guard try transaction.delete(place.entry, in: keyspace) else { return false }
    // The last entry of a node takes its stem along, which may be the last entry of the node above.
    for index in (0..<place.stemCount).reversed() {
      let entry = index == place.stemCount - 1 ? place.entry : place[stem: index + 1]
      var isEmpty = true
      let node = KeyRange.prefix([UInt8](copying: entry.extracting(first: LongKeyLayout.nodeBytes)))
      try transaction.scan(keyspace, node, order: .ascending, fetch: .keys) { _, _ in
        isEmpty = false
        return false
      }
      guard isEmpty else { break }
      try transaction.delete(place[stem: index], in: keyspace)
    }
    return true
  }

  /// Lends each entry of `range` to `body`, in `order`, until `body` returns false. Bounds may have any length.
  ///
  /// `stored` is the order of the keys. With `fetch: .keys` the values are empty.
  package func scan(
    _ range: KeyRange, order: ScanOrder = .ascending, fetch: ScanFetch = .entries,
    in transaction: any ReadTransaction,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    let order = order == .stored ? .ascending : order
    try transaction.scan(keyspace, Self.topRange(range), order: order, fetch: fetch) { key, value in
      if key.byteCount < LongKeyLayout.stemBytes { return try body(key, value) }
      return try scanNodes(below: key, range, order: order, fetch: fetch, in: transaction, body)
    }
  }

  /// Loads many sorted entries into a map that is empty. This is the fastest way to load.
  ///
  /// `body` passes the entries to its argument. Each key must be greater than the one before it, or `outOfOrder` is
  /// thrown. The argument copies key and value before it returns. It is called outside of closures that bytes of this
  /// transaction are lent to. Until the load returns, reads may or may not find the loaded entries. After an error, some
  /// of them may have been added.
  ///
  /// With a `longestKey` that entries hold whole, the engine gets the entries at once. A longer key throws `invalidKey`
  /// then.
  package func load(
    longestKey: Int = maximumKeyBytes, in transaction: any WriteTransaction,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    guard try !transaction.hasEntries(keyspace) else {
      throw StorageError(.outOfOrder, "entries are loaded into a map that isn't empty")
    }
    if longestKey <= LongKeyLayout.wholeKeyBytes {
      return try transaction.load(keyspace) { append in
        // A closure can't be handed to another one otherwise.
        try withoutActuallyEscaping(append) { append in
          try body { key, value in
            try Self.check(key, maximum: LongKeyLayout.wholeKeyBytes)
            try append(key, value)
          }
        }
      }
    }
    let loader = LongKeyLoader(self, transaction)
    try body { key, value in try loader.append(key, value) }
    try loader.finish()
  }

  /// Returns a cursor over `range`. It stands before the first entry.
  package func cursor(_ range: KeyRange, in transaction: any ReadTransaction) throws -> LongCursor {
    try LongCursor(self, range, transaction)
  }

  /// Throws `invalidKey` for a key that the map can't hold.
  @inline(__always)
  static func check(_ key: RawSpan, maximum: Int = maximumKeyBytes) throws {
    guard key.byteCount > 0 else { throw StorageError(.invalidKey, "a key is empty") }
    guard key.byteCount <= maximum else {
      throw StorageError(
        .invalidKey, "a key has \(key.byteCount) bytes, and at most \(maximum) are allowed")
    }
    guard key.unsafeLoad(as: UInt8.self) != LongKeyLayout.nodeMark else {
      throw StorageError(.invalidKey, "a key begins with byte FF")
    }
  }
}

/// The lengths of entries' parts.
enum LongKeyLayout {
  /// A stem. No other entry has this length.
  static let stemBytes = StorageLimits.maximumKeyBytes
  /// The longest key that is stored as it is.
  static let wholeKeyBytes = stemBytes - 1
  /// The first byte of a node's entries.
  static let nodeMark: UInt8 = 0xFF
  /// The mark and the digest at the beginning of a node's entries.
  static let nodeBytes = 33
  /// The bytes of a key in a stem of a node.
  static let innerStemBytes = stemBytes - nodeBytes
  /// The bytes that begin a node's entries, for the node below a stem.
  static func node(below stem: UnsafeRawBufferPointer, _ digest: KeyDigest) throws -> [UInt8] {
    var node = [UInt8](repeating: nodeMark, count: nodeBytes)
    try node.withUnsafeMutableBytes { target in
      guard let start = target.baseAddress else { return }
      try digest.sha256(of: stem, into: start + 1)
    }
    return node
  }
}

/// The stems and the entry of a key that is longer than an entry's.
struct LongKeyPlace {
  /// The stems, from the top, one behind the other.
  private var stems: [UInt8] = []
  /// The entry's key.
  private var whole: [UInt8] = []

  init(_ key: RawSpan) throws {
    let digest = try KeyDigest()
    stems.reserveCapacity(LongKeyLayout.stemBytes * (1 + key.byteCount / LongKeyLayout.innerStemBytes))
    key.extracting(first: LongKeyLayout.stemBytes).withUnsafeBytes { stems.append(contentsOf: $0) }
    var rest = key.extracting(droppingFirst: LongKeyLayout.stemBytes)
    var node = try stems.withUnsafeBytes { try LongKeyLayout.node(below: $0, digest) }
    while rest.byteCount >= LongKeyLayout.innerStemBytes {
      let start = stems.count
      stems += node
      rest.extracting(first: LongKeyLayout.innerStemBytes).withUnsafeBytes { stems.append(contentsOf: $0) }
      rest = rest.extracting(droppingFirst: LongKeyLayout.innerStemBytes)
      node = try stems.withUnsafeBytes {
        try LongKeyLayout.node(below: UnsafeRawBufferPointer(rebasing: $0[start...]), digest)
      }
    }
    whole = node
    rest.withUnsafeBytes { whole.append(contentsOf: $0) }
  }

  /// The number of stems: 1 or more.
  var stemCount: Int { stems.count / LongKeyLayout.stemBytes }

  /// A stem; 0 is the top.
  subscript(stem index: Int) -> RawSpan {
    @_lifetime(borrow self)
    get {
      let start = index * LongKeyLayout.stemBytes
      return stems.span.bytes.extracting(start..<start + LongKeyLayout.stemBytes)
    }
  }

  /// The entry's key.
  var entry: RawSpan {
    @_lifetime(borrow self)
    get { whole.span.bytes }
  }
}
