/// The documents of a file of JSON lines, gzip or plain: one JSON object per line.
package final class JSONLinesSource: RecordSource {
  private let reader: LineReader
  private let path: String
  private var splitter: IDSplitter

  /// The line number of the last record, from 1.
  package var lineNumber: Int { reader.lineNumber }

  /// Called with every line as it is in the file, without its newline, before the ID is removed.
  package var lineObserver: ((UnsafeRawBufferPointer) -> Void)?

  /// Opens the file at `path`, or standard input if it is `-`. `idProperty` is the top-level property with
  /// the ID. A line without it gives a record without an ID.
  package init(
    path: String, idProperty: String = "_id", maximumLineBytes: Int = LineReader.defaultMaximumLineBytes
  ) throws {
    self.path = path == "-" ? "standard input" : path
    reader = try LineReader(path: path, maximumLineBytes: maximumLineBytes)
    splitter = IDSplitter(idProperty: idProperty)
  }

  /// Returns the next document, or nil after the last one. Throws `DatasetError` with the line number.
  package func next() throws -> Record? {
    guard let line = try reader.next() else { return nil }
    lineObserver?(UnsafeRawBufferPointer(line))
    do {
      return try splitter.split(line)
    } catch {
      throw DatasetError(.badLine, error.reason, path: path, line: reader.lineNumber)
    }
  }
}
