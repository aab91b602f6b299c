import CSQLite
import Storage

/// The state that a connection keeps for one keyspace: its compiled statements and, in the writer, its counts
/// and last key.
///
/// A slot has its own memory and is reached by a pointer. This avoids reference counting and exclusivity
/// checks in hot paths.
struct KeyspaceSlot {
  let keyspace: Keyspace
  /// The statements by `KeyspaceStatement`. Nil until the first use.
  private let statements: UnsafeMutablePointer<OpaquePointer?>
  /// The unused statements of `get` and `row`, `sparesPerRead` of each.
  private let spareReads: UnsafeMutablePointer<OpaquePointer?>
  /// The number of reads that can be nested in one keyspace without compiling another statement.
  private static let sparesPerRead = 4
  /// The unused statements by `ScanVariant`, `sparesPerScan` of each.
  private let spareScans: UnsafeMutablePointer<OpaquePointer?>
  /// The unused `follow` statements by `ScanVariant.Kind`, with the keyspace that they lead to.
  private let spareFollows: UnsafeMutablePointer<(target: Int, statement: OpaquePointer?)>
  /// The number of scans of a kind that can run at once in a transaction without compiling another statement.
  private static let sparesPerScan = 2

  /// Whether a scan of the whole keyspace reads more than the connection's cache holds. Found out by an
  /// earlier scan.
  var isLongerThanCache = false

  // MARK: State of the writer

  /// Whether the last put replaced an entry. The next put probably does the same.
  var lastPutReplaced = false
  /// The number of entries added by the kept parts of the transaction, and by the current part (`delta`).
  var keptDelta = 0
  var delta = 0
  /// The highest row inserted by the kept parts, and by the current part (`highest`).
  var keptHighest: Int64 = 0
  var highest: Int64 = 0
  /// The number of entries before the transaction. -1 while the transaction has only appended rows, when it
  /// isn't needed.
  var countBefore = -1
  var isTouched = false
  /// The last key of the keyspace, kept while all writes are appends. `lastKeyCount` is its length, or -1 if
  /// it isn't known.
  var lastKey: UnsafeMutableRawPointer
  var lastKeyCount = -1

  init(_ keyspace: Keyspace) {
    self.keyspace = keyspace
    statements = .allocate(capacity: KeyspaceStatement.allCases.count)
    statements.initialize(repeating: nil, count: KeyspaceStatement.allCases.count)
    spareReads = .allocate(capacity: 2 * Self.sparesPerRead)
    spareReads.initialize(repeating: nil, count: 2 * Self.sparesPerRead)
    spareScans = .allocate(capacity: ScanVariant.count * Self.sparesPerScan)
    spareScans.initialize(repeating: nil, count: ScanVariant.count * Self.sparesPerScan)
    spareFollows = .allocate(capacity: ScanVariant.Kind.allCases.count)
    spareFollows.initialize(repeating: (0, nil), count: ScanVariant.Kind.allCases.count)
    lastKey = .allocate(byteCount: StorageLimits.maximumKeyBytes, alignment: 8)
  }

  /// Frees the statements. They are compiled again when needed.
  func finalizeStatements(_ functions: UnsafePointer<CSQLiteFunctions>) {
    for (statements, count) in [
      (statements, KeyspaceStatement.allCases.count), (spareReads, 2 * Self.sparesPerRead),
      (spareScans, ScanVariant.count * Self.sparesPerScan),
    ] {
      for index in 0..<count {
        _ = csqlite_finalize(functions, statements[index])
        statements[index] = nil
      }
    }
    for index in 0..<ScanVariant.Kind.allCases.count {
      _ = csqlite_finalize(functions, spareFollows[index].statement)
      spareFollows[index] = (0, nil)
    }
  }

  func deallocate() {
    statements.deallocate()
    spareReads.deallocate()
    spareScans.deallocate()
    spareFollows.deallocate()
    lastKey.deallocate()
  }

  @inline(__always)
  subscript(statement: KeyspaceStatement) -> OpaquePointer? {
    get { statements[statement.rawValue] }
    nonmutating set { statements[statement.rawValue] = newValue }
  }

  /// Takes an unused `get` or `row` statement, or returns nil if there is none.
  @inline(__always)
  func takeRead(_ which: KeyspaceStatement) -> OpaquePointer? {
    taken(spareReads + (which == .row ? Self.sparesPerRead : 0), Self.sparesPerRead)
  }

  /// Gives a `get` or `row` statement back. Returns false if there are enough.
  @inline(__always)
  func giveRead(_ statement: OpaquePointer, _ which: KeyspaceStatement) -> Bool {
    give(statement, to: spareReads + (which == .row ? Self.sparesPerRead : 0), Self.sparesPerRead)
  }

  /// Takes an unused scan statement, or returns nil if there is none.
  @inline(__always)
  func takeScan(_ variant: ScanVariant) -> OpaquePointer? {
    taken(spareScans + variant.index * Self.sparesPerScan, Self.sparesPerScan)
  }

  /// Gives a scan statement back. Returns false if there are enough.
  @inline(__always)
  func giveScan(_ statement: OpaquePointer, _ variant: ScanVariant) -> Bool {
    give(statement, to: spareScans + variant.index * Self.sparesPerScan, Self.sparesPerScan)
  }

  /// Takes a statement out of some spares. Nil when all are in use.
  @inline(__always)
  private func taken(_ spares: UnsafeMutablePointer<OpaquePointer?>, _ count: Int) -> OpaquePointer? {
    for index in 0..<count {
      if let statement = spares[index] {
        spares[index] = nil
        return statement
      }
    }
    return nil
  }

  /// Puts a statement back. False when there is no room.
  @inline(__always)
  private func give(
    _ statement: OpaquePointer, to spares: UnsafeMutablePointer<OpaquePointer?>, _ count: Int
  ) -> Bool {
    for index in 0..<count where spares[index] == nil {
      spares[index] = statement
      return true
    }
    return false
  }

  /// Takes an unused `follow` statement that leads to `target`, or returns nil if there is none.
  func takeFollow(
    _ kind: ScanVariant.Kind, into target: Int, _ functions: UnsafePointer<CSQLiteFunctions>
  ) -> OpaquePointer? {
    let spare = spareFollows[kind.rawValue]
    spareFollows[kind.rawValue] = (0, nil)
    if spare.target == target { return spare.statement }
    _ = csqlite_finalize(functions, spare.statement)
    return nil
  }

  /// Gives a `follow` statement back. Returns false if there is one already.
  func giveFollow(_ statement: OpaquePointer, _ kind: ScanVariant.Kind, into target: Int) -> Bool {
    guard spareFollows[kind.rawValue].statement == nil else { return false }
    spareFollows[kind.rawValue] = (target, statement)
    return true
  }
}
