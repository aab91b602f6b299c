import CSQLite
import Storage

/// A run of a `follow` statement: the library asks it of each entry which row is meant, and hands it that row.
///
/// The row is a guess (`RowPlaces`). When it has another key, or there is none, the key is looked up.
final class FollowVisit {
  private let connection: EngineConnection
  private let target: Keyspace
  private let slot: EngineConnection.Slot
  private let reference: EngineConnection.Reference
  private let body: RowVisit.Body
  private let end: ScanEnd
  /// The key that is wanted: of the entry at hand, whose bytes end with the library's next step. No key has no bytes.
  private let wanted: UnsafeMutableRawPointer
  @exclusivity(unchecked) private var wantedCount = 0
  @exclusivity(unchecked) private var hash: UInt64 = 0
  @exclusivity(unchecked) private var isAtEnd = false
  /// A value that was looked up, for the body to have until it returns.
  private var copy: [UInt8] = []
  /// What a closure threw.
  private(set) var error: (any Error)?

  init(
    _ connection: EngineConnection, _ target: Keyspace, _ slot: EngineConnection.Slot,
    until end: ScanEnd, _ reference: @escaping EngineConnection.Reference, _ body: @escaping RowVisit.Body
  ) {
    self.connection = connection
    self.target = target
    self.slot = slot
    self.end = end
    self.reference = reference
    self.body = body
    wanted = .allocate(byteCount: StorageLimits.maximumKeyBytes, alignment: 8)
  }

  deinit { wanted.deallocate() }

  /// Steps the statement to its end, or until a closure ends it. Returns the library's code.
  func run(_ statement: OpaquePointer, _ functions: UnsafePointer<CSQLiteFunctions>) -> Int32 {
    withExtendedLifetime(self) {
      csqlite_visit(
        functions, statement,
        { visit, key, keyBytes, value, valueBytes in
          Unmanaged<FollowVisit>.fromOpaque(visit.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.refer(
              UnsafeRawBufferPointer(start: key, count: Int(truncatingIfNeeded: keyBytes)),
              UnsafeRawBufferPointer(start: value, count: Int(truncatingIfNeeded: valueBytes)))
          }
        },
        { visit, key, keyBytes, value, valueBytes in
          Unmanaged<FollowVisit>.fromOpaque(visit.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.take(
              UnsafeRawBufferPointer(start: key, count: Int(truncatingIfNeeded: keyBytes)),
              UnsafeRawBufferPointer(start: value, count: Int(truncatingIfNeeded: valueBytes)))
              ? 1 : 0
          }
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// The row that an entry probably means; 0 when there is none to be fetched.
  @inline(__always)
  private func refer(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Int64 {
    wantedCount = 0
    if end.isBefore(key) {
      isAtEnd = true
      return 0
    }
    do {
      switch try reference(key, value) {
      case .none: return 0
      case .end:
        isAtEnd = true
        return 0
      case .key(let key):
        try connection.check(key, target)
        wanted.copyMemory(from: key.baseAddress.unsafelyUnwrapped, byteCount: key.count)
        wantedCount = key.count
        hash = KeyHash.of(key, target.number)
        return connection.places.row(of: hash)
      }
    } catch {
      self.error = error
      isAtEnd = true
      return 0
    }
  }

  @inline(__always)
  private func take(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    if isAtEnd { return false }
    if wantedCount == 0 { return true }
    let wanted = UnsafeRawBufferPointer(start: self.wanted, count: wantedCount)
    do {
      if EngineConnection.areEqual(key, wanted) { return try body(wanted, value) }
      return try lookUp(wanted)
    } catch {
      self.error = error
      return false
    }
  }

  @inline(never)
  private func lookUp(_ wanted: UnsafeRawBufferPointer) throws -> Bool {
    connection.closeGet()
    guard let found = try connection.getDocument(wanted, hash, slot) else { return true }
    copy.removeAll(keepingCapacity: true)
    copy.append(contentsOf: found)
    return try copy.withUnsafeBytes { try body(wanted, $0) }
  }
}
