/// One document of a data set: its ID, and its JSON without the ID.
///
/// The bytes are valid until the next record is read.
public struct Record {
  /// The ID in UTF-8, unescaped; nil when the line has none.
  public let id: UnsafeRawBufferPointer?
  /// The JSON object without the ID member. Not checked beyond what finding the ID took.
  public let json: UnsafeRawBufferPointer

  /// A record of bytes that outlive it.
  public init(id: UnsafeRawBufferPointer?, json: UnsafeRawBufferPointer) {
    self.id = id
    self.json = json
  }

  /// The ID as a string; invalid UTF-8 is replaced.
  public var idString: String? { id.map { String(decoding: $0, as: UTF8.self) } }
}

/// Documents one after another, as fast as they can be handed out and in constant memory.
public protocol RecordSource: AnyObject {
  /// The next record, or nil after the last. Its bytes last until the next call. Throws `DatasetError`.
  func next() throws -> Record?

  /// The number of the line that the last record came from, from 1.
  var lineNumber: Int { get }
}
