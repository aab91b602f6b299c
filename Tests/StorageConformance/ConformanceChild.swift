import Storage

/// The program that the suite starts for what is done in a process of its own: writing beside the parent,
/// being killed, running out of space, and reading broken files.
public enum ConformanceChild {
  /// Runs the command in `arguments` with one of `engines`, which is found by its name, and ends the process.
  public static func main(_ arguments: [String], engines: [EngineType]) -> Never {
    fatalError("no commands yet")
  }
}
