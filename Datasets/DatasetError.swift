/// What was wrong with a data set: which file or name, which line, and what was found.
public struct DatasetError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kind of fault, for programs.
  public enum Code: String, Sendable {
    /// No data set has that name, and there is no such file.
    case unknownDataset
    /// The data set is known but its file is not on this machine.
    case notHere
    /// The operating system refused to open, read or write a file.
    case ioError
    /// The compressed data breaks off.
    case truncated
    /// The compressed data contradicts itself: a bad header, code or checksum, or something after its end.
    case corrupt
    /// A line is longer than the reader takes.
    case lineTooLong
    /// A line is not a JSON object, or its ID is not a string.
    case badLine
    /// A number of documents that can't be.
    case invalidArgument
  }

  /// The kind of fault.
  public let code: Code
  /// What was found, for people.
  public let message: String
  /// The file it is about.
  public let path: String?
  /// The line it is about, from 1.
  public let line: Int?

  /// An error about `path` and, in a file of lines, about `line`.
  public init(_ code: Code, _ message: String, path: String? = nil, line: Int? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.line = line
  }

  /// File, line and message.
  public var description: String {
    var text = ""
    if let path { text += "\(path): " }
    if let line { text += "line \(line): " }
    return text + message
  }
}
