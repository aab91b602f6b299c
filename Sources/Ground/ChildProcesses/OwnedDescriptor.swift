import Glibc

/// An open descriptor, which no child process inherits. It is closed with its object.
package final class OwnedDescriptor: Sendable {
  package let number: Int32

  /// Takes a descriptor. It is moved above those of the standard streams, where a child process would lose it.
  private init(_ number: Int32) {
    guard 0...2 ~= number else {
      self.number = number
      return
    }
    self.number = fcntl(number, F_DUPFD_CLOEXEC, 3)
    close(number)
  }

  deinit { close(number) }

  /// Two sockets that are connected: both read and write. Unlike the ends of a pipe they can be made with O_CLOEXEC, and
  /// written to without a signal that nobody reads. Throws a `SpawnedProcess.Failure`.
  package static func sockets() throws(SpawnedProcess.Failure) -> (OwnedDescriptor, OwnedDescriptor) {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      throw SpawnedProcess.Failure(program: "a child process", code: errno)
    }
    return (OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1]))
  }
}
