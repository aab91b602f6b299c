/// A document of a data set: its ID, and its JSON without the ID.
///
/// The bytes are valid until the next record is read.
package struct Record {
  /// The unescaped ID in UTF-8; nil if the line has none.
  package let id: UnsafeRawBufferPointer?
  /// The JSON object without the ID member. Only as much of it is checked as finding the ID needs.
  package let json: UnsafeRawBufferPointer

  /// Makes a record. The bytes must outlive it.
  package init(id: UnsafeRawBufferPointer?, json: UnsafeRawBufferPointer) {
    self.id = id
    self.json = json
  }

  /// The ID as a string. Invalid UTF-8 is replaced.
  package var idString: String? { id.map { String(decoding: $0, as: UTF8.self) } }
}

/// A sequence of documents, read in constant memory.
package protocol RecordSource: AnyObject {
  /// Returns the next record, or nil after the last one. Its bytes are valid until the next call. Throws
  /// `DatasetError`.
  func next() throws -> Record?

  /// The line number of the last record, from 1.
  var lineNumber: Int { get }
}
