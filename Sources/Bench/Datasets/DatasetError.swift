/// A fault in a data set: the file or name, the line, and the fault.
package struct DatasetError: Error, Sendable, Equatable, CustomStringConvertible {
  /// The kinds of faults.
  package enum Code: String, Sendable {
    /// There is no data set and no file of that name.
    case unknownDataset
    /// The data set is known, but its file isn't on this machine.
    case notHere
    /// The operating system refused to open, read or write a file.
    case ioError
    /// The compressed data is incomplete.
    case truncated
    /// The compressed data is invalid: a wrong header, code or checksum, or other data after its end.
    case corrupt
    /// A line is longer than the limit.
    case lineTooLong
    /// A line isn't a JSON object, or its ID isn't a string.
    case badLine
    /// There are no documents.
    case empty
    /// Two documents have the same ID.
    case duplicateID
    /// The number of documents is invalid.
    case invalidArgument
  }

  /// The kind of the fault.
  package let code: Code
  /// The fault, as a message for people.
  package let message: String
  /// The file with the fault.
  package let path: String?
  /// The line with the fault, from 1.
  package let line: Int?

  /// Makes an error.
  package init(_ code: Code, _ message: String, path: String? = nil, line: Int? = nil) {
    self.code = code
    self.message = message
    self.path = path
    self.line = line
  }

  /// The file, the line and the message.
  package var description: String {
    var text = ""
    if let path { text += "\(path): " }
    if let line { text += "line \(line): " }
    return text + message
  }
}
