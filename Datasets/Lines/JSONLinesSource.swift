/// The documents of a file of JSON lines, gzip or plain: one JSON object a line.
public final class JSONLinesSource: RecordSource {
  private let reader: LineReader
  private let path: String
  private var splitter: IDSplitter

  /// The number of the line that the last record came from, from 1.
  public var lineNumber: Int { reader.lineNumber }

  /// Called with every line as it is in the file, without its line end, before the ID is taken out.
  public var lineObserver: ((UnsafeRawBufferPointer) -> Void)?

  /// Reads the file at `path`, or standard input when it is `-`. `idProperty` is the outermost property that
  /// holds the ID; a line without it gives a record without one.
  public init(
    path: String, idProperty: String = "_id", maximumLineBytes: Int = LineReader.defaultMaximumLineBytes
  ) throws {
    self.path = path == "-" ? "standard input" : path
    reader = try LineReader(path: path, maximumLineBytes: maximumLineBytes)
    splitter = IDSplitter(idProperty: idProperty)
  }

  /// The next document, or nil after the last. Throws `DatasetError` with the number of the line.
  public func next() throws -> Record? {
    guard let line = try reader.next() else { return nil }
    lineObserver?(UnsafeRawBufferPointer(line))
    do {
      return try splitter.split(line)
    } catch {
      throw DatasetError(.badLine, error.reason, path: path, line: reader.lineNumber)
    }
  }
}
