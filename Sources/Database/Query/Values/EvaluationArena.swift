import Fleece
import Storage

/// Memory for the values that expressions compute. All of it is freed at once.
///
/// Use it from one thread at a time. The arena of a context is reused for each row. Groups and results that
/// outlive a row have arenas of their own.
final class EvaluationArena {
  /// The position of an arena at the start of a scope.
  private struct Mark: BitwiseCopyable {
    let chunk: Int
    let next: UnsafeMutableRawPointer
    let end: UnsafeMutableRawPointer
  }

  private struct State {
    var next: UnsafeMutableRawPointer
    var end: UnsafeMutableRawPointer
    /// The index of the chunk that contains `next`.
    var current: Int
    var chunks: [UnsafeMutableRawBufferPointer]
    var bytes: Int
    /// The size in bytes above which growth calls `onGrowth`.
    var limit = Int.max
    var onGrowth: () -> Void = {}
    /// The weight above which an array or object isn't made, and `onWeight` is called.
    var weightLimit = UInt32.max
    var onWeight: () -> Void = {}
  }

  // A pointer avoids exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>
  // Changed only between two runs of a query.
  @exclusivity(unchecked) private var budget: QueryMemoryBudget?

  /// Creates an arena. Its memory counts towards the budget, if there is one.
  init(capacity: Int = 4096, _ budget: QueryMemoryBudget? = nil) {
    self.budget = budget
    let first = UnsafeMutableRawBufferPointer.allocate(byteCount: max(capacity, 64), alignment: 16)
    let start = first.baseAddress.unsafelyUnwrapped
    state = .allocate(capacity: 1)
    state.initialize(
      to: State(next: start, end: start + first.count, current: 0, chunks: [first], bytes: first.count))
    budget?.take(first.count)
  }

  deinit {
    budget?.giveBack(state.pointee.bytes)
    for chunk in state.pointee.chunks { chunk.deallocate() }
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// The memory in use, in bytes.
  var allocatedBytes: Int { state.pointee.bytes }

  /// Frees all allocations. What it keeps of its memory counts towards that budget from now on, or towards
  /// none.
  func begin(_ budget: QueryMemoryBudget?) {
    reset()
    self.budget?.giveBack(state.pointee.bytes)
    self.budget = budget
    budget?.take(state.pointee.bytes)
  }

  /// Calls `body` each time the arena grows and is larger than `limit` bytes.
  func onGrowth(beyond limit: Int, _ body: @escaping () -> Void) {
    state.pointee.limit = limit
    state.pointee.onGrowth = body
  }

  /// Calls `body` instead of making an array or object that is heavier. It becomes null then. Values that share parts can
  /// be larger than any memory without taking any, until they are copied, compared or written.
  func onWeight(beyond limit: UInt32, _ body: @escaping () -> Void) {
    state.pointee.weightLimit = limit
    state.pointee.onWeight = body
  }

  /// Allocates uninitialised memory, aligned to 8 bytes.
  @inline(__always)
  func allocate(bytes: Int) -> UnsafeMutableRawPointer {
    let start = state.pointee.next
    let size = (bytes &+ 7) & ~7
    if _slowPath(size > state.pointee.end - start) { return grow(size) }
    state.pointee.next = start + size
    return start
  }

  /// Allocates uninitialised memory for elements.
  @inline(__always)
  func allocate<Element: BitwiseCopyable>(
    _ count: Int, of type: Element.Type
  ) -> UnsafeMutablePointer<Element> {
    allocate(bytes: count &* MemoryLayout<Element>.stride).bindMemory(to: type, capacity: count)
  }

  @inline(never)
  private func grow(_ size: Int) -> UnsafeMutableRawPointer {
    // Chunks that are unused since the end of a scope or a reset are used first. A chunk that is too small is
    // freed. Otherwise small chunks would accumulate when each row needs more memory than the previous one.
    let next = state.pointee.current + 1
    while next < state.pointee.chunks.count {
      let chunk = state.pointee.chunks[next]
      if chunk.count >= size {
        let start = chunk.baseAddress.unsafelyUnwrapped
        state.pointee.current = next
        state.pointee.next = start + size
        state.pointee.end = start + chunk.count
        return start
      }
      state.pointee.chunks.remove(at: next)
      state.pointee.bytes -= chunk.count
      budget?.giveBack(chunk.count)
      chunk.deallocate()
    }
    let last = state.pointee.chunks[state.pointee.chunks.count - 1].count
    let chunk = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(size, min(last * 2, 1 << 20)), alignment: 16)
    let start = chunk.baseAddress.unsafelyUnwrapped
    state.pointee.chunks.append(chunk)
    state.pointee.current = state.pointee.chunks.count - 1
    state.pointee.bytes += chunk.count
    budget?.take(chunk.count)
    state.pointee.next = start + size
    state.pointee.end = start + chunk.count
    if _slowPath(state.pointee.bytes > state.pointee.limit) { state.pointee.onGrowth() }
    return start
  }

  /// Runs `body`, and then frees the memory that was allocated during the run.
  ///
  /// Scopes nest like calls, so memory that was allocated before the scope stays valid. A value that has to
  /// outlive its scope must be copied (`copy`) into an arena that lives longer.
  @inline(__always)
  func scope<Result>(_ body: () throws -> Result) rethrows -> Result {
    let mark = Mark(chunk: state.pointee.current, next: state.pointee.next, end: state.pointee.end)
    defer {
      state.pointee.current = mark.chunk
      state.pointee.next = mark.next
      state.pointee.end = mark.end
    }
    return try body()
  }

  /// Frees all allocations. When the arena is larger than 1 MiB, all chunks but the first are returned to the
  /// system.
  @inline(__always)
  func reset() {
    if _slowPath(state.pointee.current > 0) { release() }
    state.pointee.next = state.pointee.chunks[0].baseAddress.unsafelyUnwrapped
  }

  @inline(never)
  private func release() {
    if state.pointee.bytes > 1 << 20 {
      while state.pointee.chunks.count > 1 {
        let chunk = state.pointee.chunks.removeLast()
        state.pointee.bytes -= chunk.count
        budget?.giveBack(chunk.count)
        chunk.deallocate()
      }
    }
    let first = state.pointee.chunks[0]
    state.pointee.current = 0
    state.pointee.end = first.baseAddress.unsafelyUnwrapped + first.count
  }
}

extension EvaluationArena {
  /// Copies text.
  @inline(__always)
  func copy(_ text: TextSlice) -> TextSlice {
    guard text.count > 0 else { return .empty }
    let bytes = allocate(bytes: text.count)
    bytes.copyMemory(from: text.start, byteCount: text.count)
    return TextSlice(start: UnsafePointer(bytes.assumingMemoryBound(to: UInt8.self)), count: text.count)
  }

  /// Copies a string's bytes.
  func copy(_ string: String) -> TextSlice {
    var string = string
    return string.withUTF8 { copy(TextSlice(UnsafeRawBufferPointer($0))) }
  }

  /// Copies a name's bytes.
  func copy(_ name: ByteString) -> TextSlice { name.bytes.withUnsafeBytes { copy(TextSlice($0)) } }

  /// Copies a value with everything in it. The copy is valid until this arena is reset. `sharedKeys` are the
  /// names of members in objects of bodies.
  @inline(__always)
  func copy(_ value: QueryValue, _ sharedKeys: SharedKeys) -> QueryValue {
    if case .string(let text) = value { return .string(copy(text)) }
    return copy(value, sharedKeys, depth: 0)
  }

  private func copy(_ value: QueryValue, _ sharedKeys: SharedKeys, depth: Int) -> QueryValue {
    switch value {
    case .missing, .null, .bool, .int, .uint, .double: return value
    case .string(let text): return .string(copy(text))
    case .data(let bytes): return .data(copy(bytes))
    case .array, .computedArray:
      let items = allocate(value.count, of: QueryValue.self)
      var count = 0
      if depth < FleeceLimits.depth {
        value.forEachItem { item in
          let copied = copy(item, sharedKeys, depth: depth + 1)
          items[count] = copied.isMissing ? .null : copied
          count += 1
          return true
        }
      }
      return array(items, count)
    case .object, .computedObject:
      let members = allocate(value.count, of: ComputedObject.Member.self)
      var count = 0
      if depth < FleeceLimits.depth {
        value.forEachMember(sharedKeys) { name, member in
          let copied = copy(member, sharedKeys, depth: depth + 1)
          if copied.isMissing { return }
          members[count] = ComputedObject.Member(name: copy(name), value: copied)
          count += 1
        }
      }
      return object(members, count)
    }
  }

  /// Copies the values of a row.
  @inline(__always)
  func copy(
    _ values: UnsafePointer<QueryValue>, count: Int, _ sharedKeys: SharedKeys
  ) -> UnsafeMutablePointer<QueryValue> {
    let copies = allocate(max(1, count), of: QueryValue.self)
    for index in 0..<count { copies[index] = copy(values[index], sharedKeys) }
    return copies
  }

  /// Makes an array of values that are in this arena or outlive it. Missing items become null.
  func array(_ values: some RandomAccessCollection<QueryValue>) -> QueryValue {
    let items = allocate(values.count, of: QueryValue.self)
    for (index, value) in values.enumerated() { items[index] = value }
    return array(items, values.count)
  }

  /// Makes an array of items that are in this arena or outlive it. Missing items become null.
  func array(_ items: UnsafeMutablePointer<QueryValue>, _ count: Int) -> QueryValue {
    for index in 0..<count where items[index].isMissing { items[index] = .null }
    return array(asIs: items, count)
  }

  /// The same, but missing items stay missing.
  func array(asIs items: UnsafeMutablePointer<QueryValue>, _ count: Int) -> QueryValue {
    var weight = ValueWeight()
    for index in 0..<count { weight.add(items[index]) }
    if _slowPath(weight.units > state.pointee.weightLimit) { return tooHeavy() }
    return .computedArray(ComputedArray(items: UnsafePointer(items), count: count, weight: weight))
  }

  /// Makes an object of members that are in this arena or outlive it. The members are sorted in place.
  /// Missing values are left out, and of several members with the same name the first one is kept.
  func object(_ members: UnsafeMutablePointer<ComputedObject.Member>, _ count: Int) -> QueryValue {
    var kept = 0
    for index in 0..<count where !members[index].value.isMissing {
      let member = members[index]
      var low = 0
      var high = kept
      var isDouble = false
      // Members usually come in order.
      if kept > 0, member.name.compare(members[kept - 1].name) > 0 { low = kept }
      while low < high {
        let middle = (low + high) / 2
        let order = member.name.compare(members[middle].name)
        if order == 0 {
          isDouble = true
          break
        }
        if order < 0 { high = middle } else { low = middle + 1 }
      }
      if isDouble { continue }
      var hole = kept
      while hole > low {
        members[hole] = members[hole - 1]
        hole -= 1
      }
      members[low] = member
      kept += 1
    }
    return object(inOrder: members, kept)
  }

  /// Makes an object of members in the order of their different names. None is missing.
  @inline(__always)
  func object(inOrder members: UnsafeMutablePointer<ComputedObject.Member>, _ count: Int) -> QueryValue {
    var weight = ValueWeight()
    for index in 0..<count { weight.add(members[index].value) }
    if _slowPath(weight.units > state.pointee.weightLimit) { return tooHeavy() }
    return .computedObject(ComputedObject(members: UnsafePointer(members), count: count, weight: weight))
  }

  @inline(never)
  private func tooHeavy() -> QueryValue {
    state.pointee.onWeight()
    return .null
  }
}

extension UnsafeMutablePointer {
  /// Allocates at least one element, all of them equal.
  static func allocate(_ count: Int, repeating element: Pointee) -> UnsafeMutablePointer {
    let start = allocate(capacity: max(1, count))
    start.initialize(repeating: element, count: max(1, count))
    return start
  }
}
