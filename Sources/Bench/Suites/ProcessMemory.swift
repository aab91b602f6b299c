#if canImport(Glibc)
  import Glibc
#endif

/// The process's memory, for runs that measure how much something keeps.
enum ProcessMemory {
  /// `malloc_trim`, which the Swift module of the C library doesn't declare; nil if the library doesn't have
  /// it.
  private static let trim: (@convention(c) (Int) -> Int32)? = dlsym(nil, "malloc_trim").map {
    unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
  }

  /// Returns freed memory that the allocator keeps to the system.
  static func giveBack() { _ = trim?(0) }
}
