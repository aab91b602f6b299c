#if canImport(Glibc)
  import Glibc
#endif

/// The process's memory, for runs that measure what something holds on to.
enum ProcessMemory {
  /// `malloc_trim`, which no module of the C library names; nil where there is none.
  private static let trim: (@convention(c) (Int) -> Int32)? = dlsym(nil, "malloc_trim").map {
    unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
  }

  /// Gives freed memory that the allocator keeps back to the system.
  static func giveBack() { _ = trim?(0) }
}
