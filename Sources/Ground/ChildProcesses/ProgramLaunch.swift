import FoundationEssentials

/// A program to start, and what it gets.
package struct ProgramLaunch: Sendable {
  /// Where one of its standard streams goes.
  package enum Stream: Sendable {
    /// Where that of this process goes.
    case inherited
    /// Nowhere: input is empty, and output is lost.
    case null
    /// To an open file or socket, which stays open in this process too.
    case descriptor(Int32)
    /// To the file at a path. Output replaces what is in it.
    case file(String)
  }

  /// Its path.
  package var program: String
  /// The arguments after the program's own name, without bytes that are zero.
  package var arguments: [String]
  /// The whole environment. By default it is that of this process.
  package var environment: [String: String]
  /// Whether it has a process group of its own, which a terminal's Ctrl-C doesn't reach.
  package var hasOwnGroup = false
  package var input = Stream.null
  package var output = Stream.null
  package var errors = Stream.null

  package init(
    _ program: String, _ arguments: [String] = [],
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    self.program = program
    self.arguments = arguments
    self.environment = environment
  }
}
