import CTouchstone
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A process that was forked from one that used the library.
///
/// Each call is refused there before it does anything else. Threads of the parent may have held locks at the fork, of this
/// library, of Swift's runtime and of the engines, and nobody releases them in the child. So what is here takes no lock,
/// makes no object and looks no type up: it loads a flag, and hands out a text that is part of the program.
enum ForkedChild {
  /// Whether this process is one.
  private static let isOne = Atomic<Bool>(false)
  /// The handles that are alive, and the calls without a handle that are at work.
  private static let uses = Atomic<Int>(0)
  private static let registration: Int32 = {
    // What is made when it is first asked for is there before any fork.
    _ = touchstone_version()
    return pthread_atfork(nil, nil) {
      if ForkedChild.uses.load(ordering: .relaxed) > 0 { ForkedChild.isOne.store(true, ordering: .relaxed) }
    }
  }()

  /// Whether calls are refused.
  @inline(__always)
  static var isThisProcess: Bool { isOne.load(ordering: .relaxed) }

  /// Counts a handle, or a call that works without one, from before it takes any lock until `leave`.
  static func enter() {
    _ = registration
    uses.add(1, ordering: .relaxed)
  }

  /// Ends what `enter` has begun.
  static func leave() { uses.subtract(1, ordering: .relaxed) }

  private static var kind: Int32 { Int32(TOUCHSTONE_MISUSE) }
  private static var code: StaticString { "Misuse.forked" }
  private static var message: StaticString {
    "the process was forked while it used the library, so it can't: open databases after the fork, or start it anew"
  }

  /// Hands the error to C, and returns its kind.
  @inline(never)
  static func refuse(_ place: ErrorPlace?) -> Int32 {
    guard let place else { return kind }
    let header = MemoryLayout<touchstone_error>.stride
    // The texts have a NUL behind them.
    let (codeSize, messageSize) = (code.utf8CodeUnitCount + 1, message.utf8CodeUnitCount + 1)
    guard let block = malloc(header + codeSize + messageSize) else { return kind }
    let text = block + header
    memcpy(text, code.utf8Start, codeSize)
    memcpy(text + codeSize, message.utf8Start, messageSize)
    let error = block.bindMemory(to: touchstone_error.self, capacity: 1)
    error.initialize(
      to: touchstone_error(
        kind: kind, can_retry: 0,
        code: UnsafePointer(text.assumingMemoryBound(to: CChar.self)),
        message: UnsafePointer((text + codeSize).assumingMemoryBound(to: CChar.self)),
        path: nil, document: nil, offset: -1, line: 0, column: 0))
    place.pointee = error
    return kind
  }
}
