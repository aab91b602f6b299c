import Storage

/// The base class of all transactions in this module. It tracks whether they are open and how many closures
/// hold lent bytes.
class LendingTransaction {
  unowned(unsafe) let environment: Environment
  // Read in every call. A check of exclusive access would cost as much as the rest of the call.
  @exclusivity(unchecked) final var isOpen: Bool
  /// The number of closures that bytes are lent to.
  @exclusivity(unchecked) private final var lent = 0

  init(_ environment: Environment, isOpen: Bool) {
    self.environment = environment
    self.isOpen = isOpen
  }

  /// Called when the transaction has ended and the last closure has returned.
  func returned() {}

  final var lendsBytes: Bool {
    @inline(__always) get { lent > 0 }
  }

  /// Whether bytes are lent to a closure besides the one of a load, which may write.
  final var lendsWhileLoading: Bool {
    @inline(__always) get { lent > 1 }
  }

  @inline(__always)
  final func beginLending() { lent &+= 1 }

  @inline(__always)
  final func endLending() {
    lent &-= 1
    if _slowPath(!isOpen), lent == 0 { returned() }
  }

  /// Ends a snapshot. Inside a closure that bytes are lent to, the end takes effect when the closure has
  /// returned.
  @inline(__always)
  final func endSnapshot() {
    guard isOpen else { return }
    isOpen = false
    if !lendsBytes { returned() }
  }

  @inline(__always)
  final func checkOpen() throws {
    if !isOpen { throw ended() }
  }

  // MARK: Errors, out of line

  @inline(never)
  final func ended() -> StorageError { environment.error(.closed, "a transaction is used after its end") }

  @inline(never)
  final func lentBytes(_ what: String) -> StorageError {
    environment.error(.bytesAreLent, "\(what) inside a closure that bytes of the transaction are lent to")
  }
}
