/// The state of the file after a commit.
final class FileState: Sendable {
  let transaction: UInt64
  let nextNumber: UInt64
  let nextKeyspace: Int
  let table: KeyspaceTable
  /// The value that holds the list of keyspaces, if an older release wrote the file last.
  let list: (reference: Reference, count: Int)?

  init(
    transaction: UInt64, nextNumber: UInt64, nextKeyspace: Int, table: KeyspaceTable,
    list: (reference: Reference, count: Int)?
  ) {
    self.transaction = transaction
    self.nextNumber = nextNumber
    self.nextKeyspace = nextKeyspace
    self.table = table
    self.list = list
  }

  /// The state of a new file.
  static let empty = FileState(
    transaction: 0, nextNumber: RecordFormat.firstNumber, nextKeyspace: 1, table: KeyspaceTable(), list: nil)
}
