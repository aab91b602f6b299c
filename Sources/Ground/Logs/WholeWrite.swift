#if canImport(Glibc)
  import Glibc
#endif

/// Writes to a file or a pipe without the signals that a failed write sends.
///
/// A closed pipe sends SIGPIPE, and a file at the limit of its size SIGXFSZ. Both end the process by default. The
/// log of a library must not do that.
enum WholeWrite {
  /// Writes the bytes. Returns how many were written, and the error that stopped it, or 0.
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> (count: Int, error: Int32) {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    sigaddset(&signals, SIGXFSZ)
    var pending = sigset_t()
    var before = sigset_t()
    // A signal of the process that waits already isn't taken away below.
    sigpending(&pending)
    pthread_sigmask(SIG_BLOCK, &signals, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var written = 0
    while written < bytes.count {
      let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        written += count
        continue
      }
      let error = count == 0 ? EIO : errno
      if error == EINTR { continue }
      if error == EPIPE || error == EFBIG {
        let signal = error == EPIPE ? SIGPIPE : SIGXFSZ
        if sigismember(&pending, signal) == 0 {
          var only = sigset_t()
          sigemptyset(&only)
          sigaddset(&only, signal)
          var none = timespec()
          while sigtimedwait(&only, nil, &none) == -1, errno == EINTR {}
        }
      }
      return (written, error)
    }
    return (written, 0)
  }
}
