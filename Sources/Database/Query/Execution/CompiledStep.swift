import Storage

/// A step of a plan with its expressions compiled.
final class CompiledStep: @unchecked Sendable {
  /// The number of the source.
  let source: Int
  let kind: JoinKind
  let access: CompiledAccess
  let filter: CompiledExpression?
  let outerFilter: CompiledExpression?
  let needsRecord: Bool
  let includesDeleted: Bool

  /// The ID of the only document that the step may find for the rows before it. Nil if it finds documents in another way, or is part of an
  /// outer join.
  var singleID: CompiledExpression? {
    guard kind == .inner || kind == .cross, case .identifiers(let lists, _) = access, lists.count == 1,
      case .equal(let id)? = lists[0].first
    else { return nil }
    return id
  }

  init(
    _ step: PlanStep, _ program: EvaluationProgram, _ scope: PlanScope, isFirst: Bool
  ) throws(QueryError) {
    guard let source = scope.sourceNumber(step.source.name) else {
      throw QueryError(.unknownName, "there is no source \"\(step.source.name)\"")
    }
    self.source = source
    kind = step.kind
    access = try CompiledAccess(
      step.access, program, scope, step.source.name, isFirst: isFirst,
      mayStream: !step.kind.keepsUnmatched)
    filter = try program.compile(all: step.filter, in: scope)
    outerFilter = try program.compile(all: step.outerFilter, in: scope)
    needsRecord = step.needsRecord
    includesDeleted = step.source.includesDeleted
  }
}

/// The compiled way to find the rows of a step.
indirect enum CompiledAccess {
  case documents(ScanOrder)
  case identifiers([[CompiledCondition]], ScanDirection)
  case index(CompiledIndexAccess)
  case union([CompiledAccess])
  case hash(CompiledHashJoin)
  case unnest(CompiledExpression)
  /// The rows of an inner query, which aren't kept.
  case rows(SubqueryNode)
  case items(CompiledExpression)
  case value(CompiledExpression)
  case fullText(CompiledFullTextAccess)

  init(
    _ path: AccessPath, _ program: EvaluationProgram, _ scope: PlanScope, _ source: ByteString,
    isFirst: Bool = false, mayStream: Bool = true
  ) throws(QueryError) {
    switch path {
    case .documents(nil): self = .documents(.stored)
    case .documents(.forward?): self = .documents(.ascending)
    case .documents(.backward?): self = .documents(.descending)
    case .identifiers(let ranges, let direction):
      self = .identifiers(try CompiledCondition.compile(ranges, program, scope), direction)
    case .index(let access):
      self = .index(try CompiledIndexAccess(access, program, scope, source))
    case .union(let paths):
      self = .union(
        try paths.map { path throws(QueryError) in try CompiledAccess(path, program, scope, source) })
    case .hash(let build, let filter, let keys, let probes):
      self = .hash(
        CompiledHashJoin(
          build: try CompiledAccess(build, program, scope, source),
          filter: try program.compile(all: filter, in: scope),
          keys: try program.compile(keys, in: scope), probes: try program.compile(probes, in: scope),
          isSameForAllRuns: path.isSameForAllRuns))
    case .unnest(let array): self = .unnest(try program.compile(array, in: scope))
    case .items(let items):
      let compiled = try program.compile(items, in: scope)
      if let node = compiled as? SubqueryNode, !node.isShared, mayStream, !items.isConstant || isFirst {
        self = .rows(node)
      } else {
        self = .items(compiled)
      }
    case .value(let value): self = .value(try program.compile(value, in: scope))
    case .fullText(let access): self = .fullText(CompiledFullTextAccess(access, scope))
    }
  }
}

/// A compiled hash join. `build`, `filter` and `keys` fill the hash table from one side, and `probes` look
/// rows of the other side up.
final class CompiledHashJoin: @unchecked Sendable {
  let build: CompiledAccess
  let filter: CompiledExpression?
  let keys: [CompiledExpression]
  let probes: [CompiledExpression]
  /// Whether the table can be kept for other rows of the query around this one.
  let isSameForAllRuns: Bool

  init(
    build: CompiledAccess, filter: CompiledExpression?, keys: [CompiledExpression],
    probes: [CompiledExpression], isSameForAllRuns: Bool
  ) {
    self.isSameForAllRuns = isSameForAllRuns
    self.build = build
    self.filter = filter
    self.keys = keys
    self.probes = probes
  }
}

/// A compiled access to ranges of an index.
final class CompiledIndexAccess: @unchecked Sendable {
  let index: PlannedIndex
  let ranges: IndexRanges
  let direction: ScanDirection
  /// For each expression of the index, the slot of its value. -1 means none.
  let slots: [Int]
  /// The expressions of the index. They are computed for entries that don't store their values.
  let keys: [CompiledExpression]
  let isCovering: Bool
  /// Whether the values of entries are read.
  let readsValues: Bool
  /// The condition that the values of an entry have to meet.
  let entryFilter: CompiledExpression?
  /// The number of values of an entry that are read, up to the last one that an expression needs.
  private(set) var columnsRead = 0
  /// For each expression of the index, the slot if an expression reads it. -1 means none.
  private(set) var slotsRead: [Int] = []
  /// Whether the document IDs of entries are read.
  private(set) var needsID = true

  /// Computes what has to be read. Called after all expressions of the query are compiled.
  func settle(_ program: EvaluationProgram, _ source: Int) {
    slotsRead = slots.map { program.usedSlots.contains($0) ? $0 : -1 }
    columnsRead = (slotsRead.lastIndex { $0 >= 0 } ?? -1) + 1
    needsID = !isCovering || program.metaSources.contains(source)
  }

  /// Sets the slots for a row of an outer join without a match. An expression of the index can have a value
  /// without a document: `TYPE(a)` is "missing", and `IFMISSING(a, 0)` is 0. The source's row is missing.
  func readMissing(_ context: EvaluationContext) {
    for (index, slot) in slotsRead.enumerated() where slot >= 0 {
      context.slots[slot] = keys[index].evaluate(context)
    }
  }

  init(
    _ access: IndexAccess, _ program: EvaluationProgram, _ scope: PlanScope, _ source: ByteString
  ) throws(QueryError) {
    index = access.index
    ranges = IndexRanges(try CompiledCondition.compile(access.ranges, program, scope))
    direction = access.direction
    isCovering = access.isCovering
    readsValues = access.isCovering || !access.entryFilter.isEmpty
    guard readsValues else {
      slots = []
      keys = []
      entryFilter = nil
      return
    }
    slots = access.index.keys.indices.map {
      scope.slot(of: InternalName.reference(InternalName.indexKey($0, of: source))) ?? -1
    }
    keys = try program.compile(access.index.keys, in: scope.withoutSlots)
    let references = access.index.keyReferences(of: source)
    entryFilter = try program.compile(
      all: access.entryFilter.map { $0.substituting(references) }, in: scope)
  }
}

/// A compiled condition on the values of a key.
typealias CompiledCondition = ValueCondition<CompiledExpression>

extension CompiledCondition {
  /// Whether the compared values are the same in each run.
  var isConstant: Bool { values.allSatisfy { $0.constant != nil } }

  static func compile(
    _ lists: [[KeyCondition]], _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) -> [[CompiledCondition]] {
    try lists.map { list throws(QueryError) in
      try list.map { condition throws(QueryError) in
        try condition.map { value throws(QueryError) in try program.compile(value, in: scope) }
      }
    }
  }
}
