import CPostgres
import Glibc
import Storage

/// Hears of the commits of all processes, by `LISTEN`.
///
/// Writers notify only while somebody listens: a listener writes until when into the row of `touchstone`, and renews that. On a server that
/// doesn't have it or doesn't allow it, such as a standby, nothing is heard.
final class CommitListener: Sendable {
  /// For how long writers notify after a renewal, and the time between renewals, in seconds.
  private static let listenedSeconds = 90
  private static let renewalSeconds = 30.0
  /// The time until the next attempt when nothing can be heard.
  private static let retrySeconds = 30.0

  private let settings: PostgresSettings
  private let state = Lock(State())
  /// A pipe that ends a wait: the end to read, and the end to write. Both are -1 if the process has no descriptor left.
  private let alarm: (read: Int32, write: Int32)

  private struct State {
    var connection: Connection?
    var renewed: ContinuousClock.Instant?
    /// When nothing could be heard last.
    var failed: ContinuousClock.Instant?
    var isClosed = false
  }

  init(_ settings: PostgresSettings) {
    self.settings = settings
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) == 0 {
      for end in ends {
        _ = fcntl(end, F_SETFL, O_NONBLOCK)
        _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      }
    }
    alarm = (ends[0], ends[1])
  }

  deinit {
    guard alarm.read >= 0 else { return }
    Glibc.close(alarm.read)
    Glibc.close(alarm.write)
  }

  /// The channel of a schema.
  static func channel(of schema: String) -> String {
    "touchstone_" + String(UInt64(bitPattern: SessionLock.key(of: schema, for: "database")), radix: 16)
  }

  /// Waits for a commit. False after `seconds` and after `wake()`; nil if the server doesn't tell.
  func wait(seconds: Double) -> Bool? {
    state.withLock { state in
      guard !state.isClosed, alarm.read >= 0 else { return nil }
      if let failed = state.failed, ContinuousClock.now - failed < .seconds(Self.retrySeconds) { return nil }
      do {
        // What was committed while nobody listened isn't heard.
        if try listen(&state) { return true }
        let end = ContinuousClock.now + .seconds(seconds)
        while true {
          try renew(&state)
          let left = min(end - ContinuousClock.now, .seconds(Self.renewalSeconds))
          guard left > .zero, let connection = state.connection else { return false }
          switch try connection.waitForNotification(or: alarm.read, until: Deadline(after: left)) {
          case .notified: return true
          case .woken: return false
          case .timeout: continue
          }
        }
      } catch {
        state.connection?.close()
        state.connection = nil
        state.failed = .now
        return nil
      }
    }
  }

  /// Ends a wait, this one or the next.
  func wake() {
    var one: UInt8 = 1
    // A full pipe wakes too.
    _ = write(alarm.write, &one, 1)
  }

  /// Closes the connection, after ending a wait.
  func close() {
    wake()
    state.withLock { state in
      state.connection?.close()
      state = State(isClosed: true)
    }
  }

  /// Connects and listens, if that isn't so yet. Returns whether it has just begun.
  private func listen(_ state: inout State) throws -> Bool {
    if let connection = state.connection, !connection.isClosed { return false }
    let connection = try PostgresEngine.connect(settings)
    state.connection = connection
    state.renewed = nil
    guard connection.hasSettings else {
      throw PostgresError(nil, "the server doesn't notify", isLost: false)
    }
    let channel = Self.channel(of: settings.location.schema)
    _ = try connection.exchange([.text("LISTEN \(channel)")])
    try renew(&state)
    return true
  }

  /// Tells writers that somebody listens.
  private func renew(_ state: inout State) throws {
    if let renewed = state.renewed, ContinuousClock.now - renewed < .seconds(Self.renewalSeconds) { return }
    _ = try state.connection?.exchange([
      .text(
        """
        UPDATE \(settings.location.quotedSchema).touchstone \
        SET listened = now() + interval '\(Self.listenedSeconds) seconds' WHERE id = 1 \
        AND (listened IS NULL OR listened < now() + interval '\(Self.listenedSeconds * 2 / 3) seconds')
        """)
    ])
    state.renewed = .now
    state.failed = nil
  }
}
