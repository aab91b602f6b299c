import CSQLite
import Storage

/// What a connection keeps of one keyspace: its compiled statements, and in the writer what it knows of it.
///
/// A slot lies in memory of its own and is reached by a pointer, so that the hot paths pay neither reference
/// counts nor exclusivity checks.
struct KeyspaceSlot {
  let keyspace: Keyspace
  /// By `KeyspaceStatement`. Nil until first used.
  private let statements: UnsafeMutablePointer<OpaquePointer?>
  /// Of `get` and `row`, `sparesPerRead` each: those not in use.
  private let spareReads: UnsafeMutablePointer<OpaquePointer?>
  /// So many reads may be nested in one keyspace without compiling anew.
  private static let sparesPerRead = 4
  /// By `ScanVariant`, `sparesPerScan` each: those not in use.
  private let spareScans: UnsafeMutablePointer<OpaquePointer?>
  /// By `ScanVariant.Kind`: statements that follow the entries into a keyspace, those not in use.
  private let spareFollows: UnsafeMutablePointer<(target: Int, statement: OpaquePointer?)>
  /// Two scans of a kind may be under way in one transaction without compiling anew.
  private static let sparesPerScan = 2

  /// Whether a scan of all of it was found to read more than the connection's cache holds.
  var isLongerThanCache = false

  // MARK: The writer's

  /// Whether the last put found an entry: what the next one will probably find.
  var lastPutReplaced = false
  /// Entries added by the transaction's parts that are kept, and by the part that runs now.
  var keptDelta = 0
  var delta = 0
  /// The highest row that the kept parts have inserted, and the part that runs now.
  var keptHighest: Int64 = 0
  var highest: Int64 = 0
  /// How many entries there were before the transaction; -1 while it has only appended rows, which needn't be known
  /// then.
  var countBefore = -1
  var isTouched = false
  /// The keyspace's last key, while appends are the only writes; its length, or -1 when it isn't known.
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

  /// Frees the statements; they are compiled anew when needed.
  func finalizeStatements(_ functions: UnsafePointer<CSQLiteFunctions>) {
    for index in 0..<KeyspaceStatement.allCases.count {
      _ = csqlite_finalize(functions, statements[index])
      statements[index] = nil
    }
    for index in 0..<2 * Self.sparesPerRead {
      _ = csqlite_finalize(functions, spareReads[index])
      spareReads[index] = nil
    }
    for index in 0..<ScanVariant.count * Self.sparesPerScan {
      _ = csqlite_finalize(functions, spareScans[index])
      spareScans[index] = nil
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

  /// Takes a compiled `get` or `row` out, if there is one that isn't in use.
  @inline(__always)
  func takeRead(_ which: KeyspaceStatement) -> OpaquePointer? {
    let spares = spareReads + (which == .row ? Self.sparesPerRead : 0)
    for index in 0..<Self.sparesPerRead {
      if let statement = spares[index] {
        spares[index] = nil
        return statement
      }
    }
    return nil
  }

  /// Takes it back; false when there are enough.
  @inline(__always)
  func giveRead(_ statement: OpaquePointer, _ which: KeyspaceStatement) -> Bool {
    let spares = spareReads + (which == .row ? Self.sparesPerRead : 0)
    for index in 0..<Self.sparesPerRead where spares[index] == nil {
      spares[index] = statement
      return true
    }
    return false
  }

  /// Takes a compiled scan out, if there is one that isn't in use.
  @inline(__always)
  func takeScan(_ variant: ScanVariant) -> OpaquePointer? {
    let spares = spareScans + variant.index * Self.sparesPerScan
    for index in 0..<Self.sparesPerScan {
      if let statement = spares[index] {
        spares[index] = nil
        return statement
      }
    }
    return nil
  }

  /// Takes a scan back; false when there are enough.
  @inline(__always)
  func giveScan(_ statement: OpaquePointer, _ variant: ScanVariant) -> Bool {
    let spares = spareScans + variant.index * Self.sparesPerScan
    for index in 0..<Self.sparesPerScan where spares[index] == nil {
      spares[index] = statement
      return true
    }
    return false
  }

  /// Takes a compiled statement out that follows the entries into a keyspace, if there is one that isn't in use.
  func takeFollow(
    _ kind: ScanVariant.Kind, into target: Int, _ functions: UnsafePointer<CSQLiteFunctions>
  ) -> OpaquePointer? {
    let spare = spareFollows[kind.rawValue]
    spareFollows[kind.rawValue] = (0, nil)
    if spare.target == target { return spare.statement }
    _ = csqlite_finalize(functions, spare.statement)
    return nil
  }

  /// Takes it back; false when there is one.
  func giveFollow(_ statement: OpaquePointer, _ kind: ScanVariant.Kind, into target: Int) -> Bool {
    guard spareFollows[kind.rawValue].statement == nil else { return false }
    spareFollows[kind.rawValue] = (target, statement)
    return true
  }
}
