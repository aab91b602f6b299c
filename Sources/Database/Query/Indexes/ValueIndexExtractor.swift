import Documents
import Fleece
import Storage

/// Resolves names in the definition of an index. A path that begins with `item` belongs to an item of the
/// array, and all others to the document.
struct ValueIndexScope: EvaluationScope {
  var item: ByteString?

  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference {
    if let item, case .name(item)? = reference.steps.first {
      return .path(source: 1, Array(reference.steps.dropFirst()))
    }
    return .path(source: 0, reference.steps)
  }

  func source(_ name: SourceName?) throws(QueryError) -> Int {
    if let name {
      throw QueryError(.unknownName, "there is no source \"\(name.name)\" in an index", at: name.position)
    }
    return 0
  }

  func checkParameter(_ name: ByteString) throws(QueryError) {
    throw QueryError(.invalidUse, "the parameter $\(name) can't be used in an index")
  }
}

/// Computes the entries of a document in a value index. Use it from one thread at a time.
final class ValueIndexExtractor {
  private let columns: [CompiledExpression]
  private let condition: CompiledExpression?
  private let array: CompiledExpression?
  private let context: EvaluationContext
  private let digest: KeyDigest
  /// Whether the condition is checked for each item.
  private let conditionIsOfItem: Bool
  /// Whether the member values of an object have entries, as the items of an array do.
  private let hasObjects: Bool
  @exclusivity(unchecked) private var key = OrderedKeyEncoder(capacity: 1024)

  init(_ definition: ValueIndexDefinition, hasObjects: Bool = true) throws {
    self.hasObjects = hasObjects
    try definition.checkExpressions()
    let program = EvaluationProgram()
    let scope = ValueIndexScope(item: definition.unnest?.item)
    columns = try program.compile(definition.expressions, in: scope)
    condition = try definition.condition.map { try program.compile($0, in: scope) }
    // The array itself can't depend on the item.
    array = try definition.unnest.map { try program.compile($0.array, in: ValueIndexScope()) }
    conditionIsOfItem = array != nil
    context = try EvaluationContext(program, sources: 2)
    digest = try KeyDigest()
  }

  /// Sets the shared keys that the following bodies are read with.
  @inline(__always)
  func begin(_ sharedKeys: SharedKeys) { context.begin(sharedKeys) }

  /// Adds the entries of a document. They are sorted, and each key occurs once.
  @inline(__always)
  func extract(_ documentID: RawSpan, _ body: Value, into entries: ValueIndexEntries) throws {
    try documentID.withUnsafeBytes { try extract($0, body.unsafeValue, into: entries) }
  }

  /// The same for unsafe bytes. They are only used during the call.
  @inline(__always)
  func extract(
    _ documentID: UnsafeRawBufferPointer, _ body: UnsafeValue, into entries: ValueIndexEntries
  ) throws {
    context.rows[0] = SourceRow(value: QueryValue(body), id: TextSlice(documentID), sequence: 1)
    defer { context.rows[0] = SourceRow() }
    try context.arena.scope {
      if let array { return try extractItems(array, documentID, into: entries) }
      if let condition, condition.truth(context) != .true { return clear() }
      try append(documentID, to: entries)
      clear()
    }
  }

  @inline(never)
  private func extractItems(
    _ array: CompiledExpression, _ documentID: UnsafeRawBufferPointer, into entries: ValueIndexEntries
  ) throws {
    let items = array.evaluate(context)
    guard items.type == .array || hasObjects && items.type == .object else { return clear() }
    let start = entries.count
    var failure: (any Error)?
    items.forEachItem { item in
      context.rows[1] = SourceRow(value: item.isMissing ? .null : item)
      if let condition, condition.truth(context) != .true { return true }
      do { try append(documentID, to: entries) } catch { failure = error }
      return failure == nil
    }
    context.rows[1] = SourceRow()
    if let failure { throw failure }
    entries.merge(from: start)
    clear()
  }

  /// An expression that fails has the value missing in an index. A query that computes it reports the error.
  @inline(__always)
  private func clear() {
    if _slowPath(context.failure != nil) { try? context.check() }
  }

  @inline(__always)
  private func append(_ documentID: UnsafeRawBufferPointer, to entries: ValueIndexEntries) throws {
    key.removeAll()
    var details = ValueIndexEntryDetails()
    let order = context.order(nil)
    for index in columns.indices {
      let value = columns[index].evaluate(context)
      key.append(value, order)
      if _slowPath(key.lossyValues != 0), key.lossyValues & (1 << UInt64(index)) != 0 {
        if case .double(let double) = value, double != 0 || double.sign == .plus {
          details.doubles |= 1 << UInt32(index)
        } else {
          details.opaque |= 1 << UInt32(index)
        }
      }
    }
    let valuesLength = key.count
    key.append(documentID: documentID)
    try key.withUnsafeBytes { bytes throws in
      try entries.append(bytes, valuesLength: valuesLength, details, digest: digest)
    }
  }
}
