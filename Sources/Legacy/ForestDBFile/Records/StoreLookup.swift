/// Finds records of a store by their keys.
package final class StoreLookup {
  private let table: RecordIndex
  private let reader: RecordReader
  /// Reads the keys of a store. Keys that begin with `ignoring` are left out, and so are records that can't be read.
  init(
    _ cursor: StoreCursor, _ file: BlockFile, _ version: ForestDBVersion,
    ignoring first: UInt8?, scratch: String
  ) throws {
    table = RecordIndex(directory: scratch)
    reader = RecordReader(file, version)
    while let item = try cursor.next() {
      guard case .record = item else { continue }
      if let first, cursor.key.first == first { continue }
      try table.add(
        RecordIndex.Entry(
          hash: RecordIndex.hash(cursor.key), offset: cursor.offset, sequence: 0, state: 0))
    }
  }

  /// The number of keys.
  package var count: Int { table.count }

  /// Lends the body of the record with a key, nil if it can't be decompressed. Returns nil if there is no record.
  package func withBody<Result>(
    _ key: UnsafeRawBufferPointer, _ read: (UnsafeRawBufferPointer?) throws -> Result
  ) throws -> Result? {
    guard table.count > 0 else { return nil }
    let found = try table.find(RecordIndex.hash(key)) { offset in
      guard case .record = try reader.read(at: offset) else { return false }
      return reader.userKey.elementsEqual(key)
    }
    return found == nil ? nil : try read(reader.body())
  }
}
