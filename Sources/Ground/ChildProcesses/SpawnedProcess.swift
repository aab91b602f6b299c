import Glibc
import System

/// A child process without pipes: it can be waited for and killed. It is killed with its object.
///
/// Only this process is ever waited for, by its number. Foundation's `Process` watches its children with `select`,
/// which fails for descriptors above 1,023: a server's children would never be reaped.
package final class SpawnedProcess: Sendable {
  /// How a process ended.
  package enum Ending: Equatable, Sendable, CustomStringConvertible {
    case exited(Int32)
    case signalled(Int32)
    /// This process ignores SIGCHLD, or something in it waits for every child.
    case unknown

    package var description: String {
      switch self {
      case .exited(let status): "exited with status \(status)"
      case .signalled(let signal): "ended by signal \(signal)"
      case .unknown: "ended in an unknown way"
      }
    }

    /// As a shell tells it: the exit status, or 128 and the signal. -1 if it is unknown.
    package var shellStatus: Int32 {
      switch self {
      case .exited(let status): status
      case .signalled(let signal): 128 + signal
      case .unknown: -1
      }
    }
  }

  /// A program that can't be started.
  package struct Failure: Error, CustomStringConvertible {
    package let program: String
    /// The `errno`.
    package let code: Int32
    package var description: String { "can't start \(program): \(String(cString: strerror(code)))" }
  }

  /// The number of the process. Another process may have it once this one has ended and was waited for.
  package let identifier: pid_t
  private let state = Lock<Ending?>(nil)

  /// Starts a program. No signal is blocked or ignored in it, and it gets no other descriptor than its standard streams,
  /// unless this process has opened one without O_CLOEXEC. Throws `Failure`.
  package init(_ launch: ProgramLaunch) throws(Failure) {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    for (number, stream) in [launch.input, launch.output, launch.errors].enumerated() {
      let number = Int32(number)
      let mode = number == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC
      switch stream {
      case .inherited: break
      case .null: posix_spawn_file_actions_addopen(&actions, number, "/dev/null", mode, 0)
      case .descriptor(let descriptor): posix_spawn_file_actions_adddup2(&actions, descriptor, number)
      case .file(let path): posix_spawn_file_actions_addopen(&actions, number, path, mode, 0o600)
      }
    }

    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    let group = launch.hasOwnGroup ? POSIX_SPAWN_SETPGROUP : 0
    posix_spawnattr_setflags(&attributes, Int16(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var words = ([launch.program] + launch.arguments).map { strdup($0) } + [nil]
    var variables = launch.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in words + variables { free(text) } }
    var identifier = pid_t()
    let code = posix_spawn(&identifier, launch.program, &actions, &attributes, &words, &variables)
    guard code == 0 else { throw Failure(program: launch.program, code: code) }
    self.identifier = identifier
  }

  deinit {
    kill()
    wait()
  }

  /// How it ended; nil while it runs.
  package var ending: Ending? {
    state.withLock { state in
      if state == nil {
        var status: Int32 = 0
        let found = waitpid(identifier, &status, WNOHANG)
        let signal = status & 0x7F
        if found < 0, errno != EINTR {
          state = .unknown
        } else if found > 0 {
          state = signal == 0 ? .exited(status >> 8 & 0xFF) : .signalled(signal)
        }
      }
      return state
    }
  }

  /// Sends a signal, if it hasn't ended.
  package func kill(_ signal: Int32 = SIGKILL) {
    // Until it was waited for, no other process has its number.
    state.withLock { if $0 == nil { _ = Glibc.kill(identifier, signal) } }
  }

  /// Waits until it ends.
  @discardableResult
  package func wait() -> Ending {
    while true {
      if let ending { return ending }
      // It is left to `ending`, which sees to it that no signal goes to another process.
      var information = siginfo_t()
      _ = waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT)
    }
  }

  /// Waits until it ends, but at most `seconds`. Nil if it still runs then.
  package func wait(seconds: Double) -> Ending? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      if let ending { return ending }
      guard ContinuousClock.now < deadline else { return nil }
      usleep(1_000)
    }
  }
}
