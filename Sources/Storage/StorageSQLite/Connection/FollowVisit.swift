import Bytes
import CSQLite
import Storage

/// A run of a `follow` statement. For each entry, the library first asks which row the entry refers to, and
/// then passes the entry and that row.
///
/// The row number is a guess (`RowPlaces`). The key of the row is compared with the wanted key, in the same
/// snapshot and within the same step. If the row has another key, or doesn't exist, the wanted key is looked
/// up.
final class FollowVisit {
  private let connection: EngineConnection
  private let target: Keyspace
  private let slot: EngineConnection.Slot
  private let reference: EngineConnection.Reference
  private let body: EngineConnection.FollowBody
  private let end: ScanEnd
  /// The place of the wanted key in the current entry.
  @exclusivity(unchecked) private var wanted = ScanReference.none
  /// The error that a closure threw.
  private(set) var error: (any Error)?

  init(
    _ connection: EngineConnection, _ target: Keyspace, _ slot: EngineConnection.Slot,
    until end: ScanEnd, _ reference: @escaping EngineConnection.Reference,
    _ body: @escaping EngineConnection.FollowBody
  ) {
    self.connection = connection
    self.target = target
    self.slot = slot
    self.end = end
    self.reference = reference
    self.body = body
  }

  /// Steps the statement to its end, or until a closure ends it. Returns the library's result code.
  func run(_ statement: OpaquePointer, _ functions: UnsafePointer<CSQLiteFunctions>) -> Int32 {
    withExtendedLifetime(self) {
      csqlite_follow(
        functions, statement,
        { visit, key, keyBytes, value, valueBytes in
          Unmanaged<FollowVisit>.fromOpaque(visit.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.refer(UnsafeRawBufferPointer(key, keyBytes), UnsafeRawBufferPointer(value, valueBytes))
          }
        },
        { visit, key, keyBytes, value, valueBytes, foundKey, foundKeyBytes, found, foundBytes in
          Unmanaged<FollowVisit>.fromOpaque(visit.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.take(
              UnsafeRawBufferPointer(key, keyBytes), UnsafeRawBufferPointer(value, valueBytes),
              UnsafeRawBufferPointer(foundKey, foundKeyBytes), UnsafeRawBufferPointer(found, foundBytes))
              ? 1 : 0
          }
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  /// Returns the number of the row that an entry probably refers to, or 0 if no row is to be fetched.
  @inline(__always)
  private func refer(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Int64 {
    wanted = .none
    if end.isBefore(key) {
      wanted = .end
      return 0
    }
    do {
      wanted = try reference(key.bytes, value.bytes)
      guard let wantedKey = try self.key(key, value) else { return 0 }
      try connection.check(wantedKey, target)
      return connection.places.row(of: ByteHash.of(wantedKey, target.number))
    } catch {
      self.error = error
      wanted = .end
      return 0
    }
  }

  /// Returns the wanted key of the current entry, or nil if nothing is wanted.
  @inline(__always)
  private func key(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws
    -> UnsafeRawBufferPointer?
  {
    switch wanted {
    case .inKey(let place): try part(of: key, place)
    case .inValue(let place): try part(of: value, place)
    case .none, .end: nil
    }
  }

  @inline(__always)
  private func part(of bytes: UnsafeRawBufferPointer, _ place: Range<Int>) throws -> UnsafeRawBufferPointer {
    guard place.lowerBound >= 0, place.upperBound <= bytes.count else {
      throw StorageError(
        .invalidArgument, "a reference names the bytes \(place) of an entry of \(bytes.count) bytes",
        path: connection.path)
    }
    return UnsafeRawBufferPointer(rebasing: bytes[place])
  }

  @inline(__always)
  private func take(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ foundKey: UnsafeRawBufferPointer,
    _ found: UnsafeRawBufferPointer
  ) -> Bool {
    do {
      guard let wantedKey = try self.key(key, value) else {
        if case .end = wanted { return false }
        return true
      }
      if equalBytes(foundKey, wantedKey) {
        return try body(key.bytes, value.bytes, found.bytes)
      }
      var goesOn = true
      _ = try connection.readDocument(wantedKey, ByteHash.of(wantedKey, target.number), slot) {
        goesOn = try body(key.bytes, value.bytes, $0)
      }
      return goesOn
    } catch {
      self.error = error
      return false
    }
  }
}

extension UnsafeRawBufferPointer {
  @inline(__always)
  fileprivate init(_ start: UnsafeRawPointer?, _ count: Int32) {
    self.init(start: start, count: Int(truncatingIfNeeded: count))
  }
}
