#if canImport(Glibc)
  import Glibc
#endif

/// The descriptors 0, 1 and 2.
enum StandardDescriptors {
  /// Opens those that the caller has closed (`>&-`). The first files of a database would get their numbers otherwise, and what is
  /// printed would go there.
  ///
  /// Standard input then is at its end, standard output can't be written, which is an error of the command, and messages are lost.
  static func openClosed() {
    for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) < 0 {
      // It gets the lowest free number, and those below are open by now.
      _ = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
