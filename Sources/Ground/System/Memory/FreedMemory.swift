#if canImport(Glibc)
  import Glibc
#endif

/// Memory that was freed, and that the allocator keeps for what comes next. After a peak it is much, and the system has it only when it
/// is given back.
package enum FreedMemory {
  /// `malloc_trim` of glibc, which its module doesn't have. Other C libraries have none.
  private static let trim = dlsym(nil, "malloc_trim").map {
    unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
  }

  private static let workers = Workers(maximum: 1)
  /// The number of forks before it was scheduled; nil if it isn't. What a parent scheduled, no child does.
  private static let scheduled = Lock<Int?>(nil)
  private static let delay = 1.0

  /// Gives it back to the system, as far as whole pages are free. That takes up to a second for some gigabytes. Does nothing where the C
  /// library can't.
  package static func giveBack() { _ = trim?(0) }

  /// The same a second later, on another thread: for one who is about to free much. Calls before it begins count as one.
  package static func giveBackSoon() {
    let now = ForkCount.register()
    let isFirst = scheduled.withLock { scheduled in
      defer { scheduled = now }
      return scheduled != now
    }
    guard isFirst else { return }
    SystemTimer().schedule(after: delay) {
      workers.enqueue {
        scheduled.withLock { $0 = nil }
        giveBack()
      }
    }
  }
}
