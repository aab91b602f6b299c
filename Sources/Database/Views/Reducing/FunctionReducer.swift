import Bytes
import Fleece
import Scripts

//   partial   := 00  JSON  |  01  message  |  02  |  03  message     the function threw; no rows; the result doesn't shrink

/// Reduces with a function of the app's, or with a script.
struct FunctionReducer: Reducer {
  /// `keys` and `values` are JSON arrays. The result is JSON. For a rereduce `keys` is `null`.
  typealias Function = @Sendable (_ keys: [UInt8], _ values: [UInt8], _ rereduces: Bool) throws -> [UInt8]

  /// What an item of `keys` is.
  enum KeyForm {
    /// The key.
    case key
    /// An array of the key and the document's ID, as CouchDB has it.
    case keyAndID
  }

  /// A call of a function that rereduces gets at most so many rows, or so many bytes of them.
  static let rowsOfCall = 1_024
  static let bytesOfCall = 1 << 20

  let identity: String
  let canRereduce: Bool
  let keyForm: KeyForm
  /// The most memory that the rows of one call may take, in bytes.
  let maximumBytes: Int
  let function: Function

  func makeReduction() -> any Reduction { FunctionReduction(self) }
}

private final class FunctionReduction: Reduction {
  private let reducer: FunctionReducer
  private var keys: [UInt8] = []
  private var values: [UInt8] = []
  private var rows = 0
  /// The results of calls so far, as the items of a JSON array.
  private var partials: [UInt8] = []
  private var partialCount = 0
  private var failure: ViewReduceError?

  init(_ reducer: FunctionReducer) { self.reducer = reducer }

  func reset() {
    keys.removeAll(keepingCapacity: keys.count < 1 << 16)
    values.removeAll(keepingCapacity: values.count < 1 << 16)
    rows = 0
    partials.removeAll(keepingCapacity: partials.count < 1 << 16)
    partialCount = 0
    failure = nil
  }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    guard failure == nil else { return }
    let comma = UInt8(ascii: ",")
    if rows > 0 {
      keys.append(comma)
      values.append(comma)
    }
    rows += 1
    if reducer.keyForm == .keyAndID { keys.append(UInt8(ascii: "[")) }
    row.keyJSON.withUnsafeBytes { keys.append(contentsOf: $0) }
    if reducer.keyForm == .keyAndID {
      keys.append(comma)
      keys.append(jsonString: row.documentID)
      keys.append(UInt8(ascii: "]"))
    }
    try row.withValue(expanding: expanding) { values.append(contentsOf: $0) }
    let bytes = keys.count + values.count
    if reducer.canRereduce, rows >= FunctionReducer.rowsOfCall || bytes >= FunctionReducer.bytesOfCall {
      try reduceRows()
    } else if bytes + partials.count > reducer.maximumBytes {
      throw ViewReduceError(
        .tooLarge, "the rows of one call of a reduce function have more than \(reducer.maximumBytes) bytes")
    }
  }

  func merge(_ partial: RawSpan) throws {
    guard failure == nil else { return }
    try reduceRows()
    guard failure == nil else { return }
    var reader = ByteReader(partial)
    switch reader.byte() {
    case 0: reader.rest.withUnsafeBytes { append(partial: $0) }
    case 1: failure = ViewReduceError(.failed, String(copying: reader.rest))
    case 2: break
    case 3: failure = ViewReduceError(.doesNotShrink, String(copying: reader.rest))
    default: throw ViewReduceError.damaged
    }
    if partialCount >= FunctionReducer.rowsOfCall || partials.count >= FunctionReducer.bytesOfCall {
      try rereduce()
    }
  }

  private func append(partial: UnsafeRawBufferPointer) {
    if partialCount > 0 { partials.append(UInt8(ascii: ",")) }
    partials.append(contentsOf: partial)
    partialCount += 1
  }

  /// Calls the function with the rows that wait.
  private func reduceRows() throws {
    guard rows > 0 else { return }
    let result = try call(
      keys: FunctionReduction.array(keys), FunctionReduction.array(values), rereduces: false)
    keys.removeAll(keepingCapacity: true)
    values.removeAll(keepingCapacity: true)
    rows = 0
    result?.withUnsafeBytes { append(partial: $0) }
  }

  /// Makes one result of several.
  private func rereduce() throws {
    guard partialCount > 1 else { return }
    let result = try call(keys: Array("null".utf8), FunctionReduction.array(partials), rereduces: true)
    partials.removeAll(keepingCapacity: true)
    partialCount = 0
    result?.withUnsafeBytes { append(partial: $0) }
  }

  private func call(keys: [UInt8], _ values: [UInt8], rereduces: Bool) throws -> [UInt8]? {
    do { return try reducer.function(keys, values, rereduces) } catch let error as ScriptError
      where error.code == .stopped || error.code == .unavailable
    {
      // It says nothing about the rows, so it must not be stored: a later call may succeed.
      throw error
    } catch let error as ViewError where error.code == .scriptFailed {
      throw error
    } catch {
      failure = error as? ViewReduceError
      if failure?.code != .doesNotShrink { failure = ViewReduceError(.failed, "\(error)") }
      return nil
    }
  }

  private static func array(_ items: [UInt8]) -> [UInt8] {
    [UInt8(ascii: "[")] + items + [UInt8(ascii: "]")]
  }

  private func finish() throws {
    try reduceRows()
    if failure == nil { try rereduce() }
  }

  func write(to partial: inout ByteBuffer) throws {
    try finish()
    if let failure {
      partial.append(failure.code == .doesNotShrink ? 3 : 1)
      var message = failure.message
      message.withUTF8 { partial.append(UnsafeRawBufferPointer($0)) }
    } else if partialCount == 0 {
      partial.append(2)
    } else {
      partial.append(0)
      partials.withUnsafeBytes { partial.append($0) }
    }
  }

  func result(to json: inout [UInt8]) throws {
    try finish()
    if let failure {
      guard failure.code == .failed else { throw failure }
      throw ViewReduceError(.failed, "a reduce function failed: \(failure.message)")
    }
    json.append(contentsOf: partialCount == 0 ? Array("null".utf8) : partials)
  }
}
