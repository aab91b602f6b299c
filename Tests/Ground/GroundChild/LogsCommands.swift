// Commands of the child process for the tests of logs.
//
//   logs write DIRECTORY   logs numbered lines to files until it is killed; prints each number once it is written
//   logs fill DIRECTORY    logs numbered lines to a file that can't grow above 8,000 bytes; then it may again
//   logs pipe              closes the reader of standard error, logs, and prints "alive"
//   logs levels            logs an info of the domain `sync`, and a warning

import ChildSupport
import Logs

#if canImport(Glibc)
  import Glibc
#endif

enum LogsCommands: ChildCommands {
  static let name = "logs"
  static let usage = "write|fill|pipe|levels [DIRECTORY]"

  static func run(_ arguments: [String]) throws {
    switch (arguments.first, arguments.count) {
    case ("write", 2):
      Log.add(try LogFiles(directory: arguments[1], maximumFileBytes: 8_192, maximumFiles: 1_000_000))
      for number in 0... {
        Log.write(.info, .network, nil, "number \(number)")
        say("\(number)")
      }
    case ("fill", 2):
      // SIGXFSZ stays as it is: it would end the process.
      Log.add(try LogFiles(directory: arguments[1]))
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      let before = limit.rlim_cur
      limit.rlim_cur = 8_000
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      for number in 0..<500 { Log.write(.info, .network, nil, "number \(number)") }
      limit.rlim_cur = before
      setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
      Log.write(.info, .network, nil, "after the disk was full")
    case ("pipe", 1):
      var ends: [Int32] = [0, 0]
      guard Glibc.pipe(&ends) == 0, dup2(ends[1], 2) == 2 else { throw WrongUsage() }
      close(ends[0])
      close(ends[1])
      Log.write(.warning, .network, nil, "nobody reads this")
      say("alive")
    case ("levels", 1):
      Log.write(.info, .sync, nil, "an info")
      Log.write(.warning, .sync, nil, "a warning")
    default: throw WrongUsage()
    }
  }
}
