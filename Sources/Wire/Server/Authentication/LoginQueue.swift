import Bytes
import System

/// Checks passwords on two threads. Their hashes are slow and large on purpose, so a flood of logins must take no more of the machine
/// than that, and only so many wait: of one network a quarter of all, so that it doesn't keep out others.
final class LoginQueue: Sendable {
  private let workers = Workers(maximum: 2)
  private let maximum: Int
  private let pending = Lock<(all: Int, byNetwork: [ByteString: Int])>((0, [:]))

  /// Takes up to `maximum` logins, those that are being checked included.
  init(maximum: Int) { self.maximum = max(1, maximum) }

  /// Runs `check` on a thread of its own, which calls its argument once when it is done. False if too many wait.
  func enqueue(_ network: ByteString, _ check: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void)
    -> Bool
  {
    let isTaken = pending.withLock { pending in
      let ofNetwork = pending.byNetwork[network] ?? 0
      guard pending.all < maximum, ofNetwork < max(1, maximum / 4) else { return false }
      pending.all += 1
      pending.byNetwork[network] = ofNetwork + 1
      return true
    }
    guard isTaken else { return false }
    workers.enqueue { check { [self] in leave(network) } }
    return true
  }

  private func leave(_ network: ByteString) {
    pending.withLock { pending in
      pending.all -= 1
      let ofNetwork = (pending.byNetwork[network] ?? 1) - 1
      pending.byNetwork[network] = ofNetwork > 0 ? ofNetwork : nil
    }
  }
}
