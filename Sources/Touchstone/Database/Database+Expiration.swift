import Documents
import FoundationEssentials
import Storage

/// A document that expires, and when.
public struct Expiration: Sendable, Hashable {
  /// The document's ID.
  public let documentID: String
  /// When it is purged.
  public let date: Date
}

extension Database {
  /// Sets when the document expires; nil for never. A time that is over is allowed.
  ///
  /// When its time is over the document is purged, soon and in the background; one that expires while the database is
  /// closed, when it is next opened. A purge is local: nothing of it is synced. Saving or deleting the document keeps
  /// its time, so that a tombstone expires as well; a purge ends it. Milliseconds count. Throws `notFound` when there
  /// is no such document.
  public func setExpiration(of id: String, at date: Date?) throws {
    try writable.setExpiration(of: id, milliseconds: try date.map(Database.milliseconds))
  }

  /// Sets the document to expire so many seconds from now.
  public func setExpiration(of id: String, after seconds: Double) throws {
    try setExpiration(of: id, at: Date(timeIntervalSinceNow: seconds))
  }

  /// When the document expires; nil when it doesn't, or isn't there.
  public func expiration(of id: String) throws -> Date? {
    try store.expiration(of: id).map(Database.date)
  }

  /// The documents that expire, the earliest first, at most `limit`.
  public func expirations(limit: Int = .max) throws -> [Expiration] {
    try store.expirations(limit: limit).map {
      Expiration(documentID: $0.documentID, date: Database.date($0.milliseconds))
    }
  }

  /// How many documents expire some time. Constant time.
  public var expirationCount: Int { get throws { try store.expirationCount } }

  /// Purges the documents whose time is over at `date` (now), without waiting for the background; says how many there
  /// were.
  @discardableResult
  public func purgeExpired(asOf date: Date = Date()) throws -> Int {
    try writable.purgeExpired(at: try Database.milliseconds(date))
  }

  static func date(_ milliseconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(milliseconds) / 1000)
  }

  private static func milliseconds(_ date: Date) throws -> Int64 {
    let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
    guard !milliseconds.isNaN else {
      throw StorageError(.invalidArgument, "a document can't expire at a date that is no number")
    }
    // Where doubles count in milliseconds: 285,000 years either way.
    let limit = Double(1 << 53)
    return Int64(min(max(milliseconds, -limit), limit))
  }
}
