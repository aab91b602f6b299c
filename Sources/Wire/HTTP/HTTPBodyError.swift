/// Why a body ends early.
package enum HTTPBodyError: Error, Sendable, Hashable {
  /// The client is gone, was cut off, or the server stops.
  case clientGone
  /// A request's body is longer than allowed. The answer is 413.
  case tooLong
  /// An answer is longer or shorter than its length said, or has ended.
  case wrongLength
  /// A request's body isn't what its headers say, such as gzip. The answer is 400.
  case malformed
}
