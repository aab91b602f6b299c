#if THREAD_CHECKS
  import Synchronization

  #if canImport(Glibc)
    import Glibc
  #endif
#endif

/// Checks that only one thread at a time uses what has no lock.
///
/// The thread that runs an event loop, the jobs of a lane or a write transaction enters, and leaves at the end. What it
/// calls asserts that it is on that thread. A wrong thread ends the process, with a line on standard error that names the
/// object.
///
/// Only a build with `THREAD_CHECKS` does this: the Makefile's (docs/testing.md). In other builds the checker is empty, and
/// its calls are too.
@usableFromInline package struct ThreadChecker: ~Copyable, Sendable {
  #if THREAD_CHECKS
    /// The thread inside; 0 if there is none.
    private let thread = Atomic<UInt>(0)
    private let subject: StaticString
  #endif

  /// Makes a checker for the object that `subject` names.
  @inlinable
  package init(_ subject: StaticString) {
    #if THREAD_CHECKS
      self.init(checking: subject)
    #endif
  }

  /// Whether this build checks threads.
  package static var isCompiled: Bool {
    #if THREAD_CHECKS
      true
    #else
      false
    #endif
  }

  /// The calling thread has the object from now on. No other thread may have it.
  @inlinable
  package func enter() {
    #if THREAD_CHECKS
      took()
    #endif
  }

  /// The calling thread, which has the object, gives it up.
  @inlinable
  package func leave() {
    #if THREAD_CHECKS
      gave()
    #endif
  }

  /// Ends the process unless the calling thread has the object.
  @inlinable
  package func assertCurrent() {
    #if THREAD_CHECKS
      check()
    #endif
  }

  #if THREAD_CHECKS
    @usableFromInline init(checking subject: StaticString) { self.subject = subject }

    @usableFromInline func took() {
      let (isFree, other) = thread.compareExchange(
        expected: 0, desired: UInt(pthread_self()), ordering: .relaxed)
      if !isFree { Self.fail("\(subject) is used by thread \(other) and by thread \(pthread_self())") }
    }

    @usableFromInline func gave() {
      check()
      thread.store(0, ordering: .relaxed)
    }

    @usableFromInline func check() {
      let owner = thread.load(ordering: .relaxed)
      guard owner != UInt(pthread_self()) else { return }
      let whose = owner == 0 ? "no thread" : "thread \(owner)"
      Self.fail("\(subject) belongs to \(whose), and thread \(pthread_self()) uses it")
    }

    /// Ends the process.
    static func fail(_ what: String) -> Never {
      var line = "touchstone: wrong thread: \(what)\n"
      _ = line.withUTF8 { write(STDERR_FILENO, $0.baseAddress, $0.count) }
      abort()
    }
  #endif
}
