import Documents
import Fleece

/// The memory for what a statement that changes documents keeps: the rows that it finds, those of RETURNING, and the list of changes.
///
/// It is a budget of its own, beside those of the queries that the statement runs: their limit, of what they share with others. Who
/// shares nothing with others has no limit, as for the rows that `Query.run` returns. The memory is given back when this object goes, so
/// whoever keeps rows keeps it too. Use it from one thread at a time.
// Unchecked: after the statement nobody calls it, and the last owner frees it.
package final class StatementMemory: @unchecked Sendable {
  private let budget: QueryMemoryBudget

  /// Makes the memory of one statement with the limits of its queries.
  package init(_ options: Query.Options) {
    budget = QueryMemoryBudget(
      limit: options.sharedMemory == nil ? .max : options.memoryLimit, of: options.sharedMemory)
  }

  /// Takes so many bytes.
  ///
  /// - Throws: `memoryLimit` or `memoryBusy`.
  package func take(_ bytes: Int) throws {
    budget.take(bytes)
    try budget.check(.statement)
  }

  /// Gives so many bytes back.
  func giveBack(_ bytes: Int) { budget.giveBack(bytes) }
}

/// Rows of several runs that are kept together.
package final class KeptRows {
  /// The rows, in the order in which they came.
  package private(set) var rows: [QueryRow] = []
  private var storage: ResultStorage?
  private var counted = 0
  private let memory: StatementMemory

  /// No rows yet. They will count as memory of a statement.
  package init(_ memory: StatementMemory) { self.memory = memory }

  fileprivate func append(
    _ values: UnsafePointer<QueryValue>, _ columns: ResultColumns, _ sharedKeys: SharedKeys
  ) throws {
    let storage = self.storage ?? ResultStorage(columns)
    self.storage = storage
    rows.append(QueryRow(storage, storage.copy(values, sharedKeys)))
    let bytes = storage.allocatedBytes + rows.capacity * MemoryLayout<QueryRow>.stride
    if bytes > counted {
      try memory.take(bytes - counted)
      counted = bytes
    }
  }
}

extension Query {
  /// Runs the query and returns all rows, which count as memory of a statement. It isn't for EXPLAIN and its likes.
  ///
  /// - Throws: the errors of `run`.
  package func run(
    _ parameters: [String: JSONValue], cancellation: QueryCancellation, keepingIn memory: StatementMemory
  ) throws -> QueryResults {
    try limited(cancellation) { cancellation in
      try read { snapshot in
        let storage = ResultStorage(columns)
        var counted = 0
        do {
          try execute(parameters, cancellation, on: snapshot, rows: { storage.count }) { sharedKeys in
            .receiver { values in
              storage.append(values, sharedKeys)
              let bytes = storage.allocatedBytes + storage.rowCapacityBytes
              if bytes > counted {
                try memory.take(bytes - counted)
                counted = bytes
              }
              return true
            }
          }
        } catch {
          memory.giveBack(counted)
          throw error
        }
        if let limit = options.rowLimit, storage.count > limit { throw Options.rowLimitError(limit) }
        return QueryResults(storage)
      }
    }
  }

  /// Runs the query and adds its rows to others. It isn't for EXPLAIN and its likes, and runs inside of a transaction.
  ///
  /// - Throws: the errors of `run`.
  package func run(
    _ parameters: [String: JSONValue], cancellation: QueryCancellation, addingTo kept: KeptRows
  ) throws {
    try limited(cancellation) { cancellation in
      try source.read { snapshot in
        var count = 0
        try execute(parameters, cancellation, on: snapshot, rows: { count }) {
          [columns, options] sharedKeys in
          .receiver { values in
            if let limit = options.rowLimit, count >= limit { throw Options.rowLimitError(limit) }
            count += 1
            try kept.append(values, columns, sharedKeys)
            return true
          }
        }
      }
    }
  }
}
