import Documents
import FoundationEssentials
import Storage

/// A document that expires, and its expiration date.
public struct Expiration: Sendable, Hashable {
  /// The document's ID.
  public let documentID: String
  /// The date when it is purged.
  public let date: Date
}

extension Database {
  /// Sets when the document expires; nil for never. A date in the past is allowed.
  ///
  /// An expired document is purged in the background soon after that date. If the database is closed then,
  /// the next open purges it. A purge is local and isn't synced. Saving or deleting the document keeps its
  /// expiration, so tombstones expire too. A purge removes the expiration. The resolution is one millisecond.
  /// Throws `notFound` if there is no such document.
  public func setExpiration(of id: String, at date: Date?) throws {
    try writable.setExpiration(of: id, milliseconds: try date.map(Database.milliseconds))
  }

  /// Sets the document to expire this many seconds from now.
  public func setExpiration(of id: String, after seconds: Double) throws {
    try setExpiration(of: id, at: Date(timeIntervalSinceNow: seconds))
  }

  /// The date when the document expires; nil if it doesn't expire or doesn't exist.
  public func expiration(of id: String) throws -> Date? {
    try store.expiration(of: id).map(Database.date)
  }

  /// Returns the documents that expire, earliest first, at most `limit`.
  public func expirations(limit: Int = .max) throws -> [Expiration] {
    try store.expirations(limit: limit).map {
      Expiration(documentID: $0.documentID, date: Database.date($0.milliseconds))
    }
  }

  /// The number of documents that expire. Constant time.
  public var expirationCount: Int { get throws { try store.expirationCount } }

  /// Purges the documents that have expired at `date` (default: now), without waiting for the background.
  /// Returns their number.
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
      throw StorageError(.invalidArgument, "the expiration date isn't a number")
    }
    // The range in which doubles represent whole milliseconds: 285,000 years before and after 1970.
    let limit = Double(1 << 53)
    return Int64(min(max(milliseconds, -limit), limit))
  }
}
