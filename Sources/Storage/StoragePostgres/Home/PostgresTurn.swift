import Storage

/// A turn to work: a session's advisory lock, over a connection of its own. It is lost with the connection.
final class PostgresTurn: WorkTurn {
  /// The time that the server may take for an answer, in seconds. It gives up the lock of a client that it doesn't hear for longer
  /// (the `tcp_keepalives` of each session), so a client whose network is cut ends its work first.
  private static let answerSeconds = 10

  let canBeLost = true
  private let location: String
  private let lock: SessionLock

  init(_ settings: PostgresSettings, location: String, for purpose: String) {
    var settings = settings
    settings.answerSeconds = Self.answerSeconds
    self.location = location
    lock = SessionLock(settings, for: purpose)
  }

  func take() throws -> Bool {
    try reporting("the work in the background can't be locked", location) {
      try lock.takeAlone(seconds: 0) { false }
    }
  }

  func isStillHeld() throws -> Bool {
    try reporting("the work in the background can't be locked", location) { try lock.isStillAlone() }
  }

  func giveBack() { lock.close() }
}
