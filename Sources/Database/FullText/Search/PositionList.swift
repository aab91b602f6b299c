/// A reusable list of places in the texts of a document. A place has the column in its upper 32 bits and the
/// position in its lower 32 bits.
final class PositionList {
  private struct State {
    var places: UnsafeMutablePointer<UInt64>
    var count = 0
    var capacity = 64
  }

  // The state is behind a pointer to avoid exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>

  init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State(places: .allocate(capacity: 64)))
  }

  deinit {
    state.pointee.places.deallocate()
    state.deallocate()
  }

  @inline(__always)
  var count: Int { state.pointee.count }
  @inline(__always)
  var isEmpty: Bool { state.pointee.count == 0 }
  /// The places. The pointer is valid until the next change.
  @inline(__always)
  var places: UnsafeMutablePointer<UInt64> { state.pointee.places }

  @inline(__always)
  func removeAll() { state.pointee.count = 0 }

  /// Keeps only the first `count` places.
  @inline(__always)
  func truncate(to count: Int) { state.pointee.count = count }

  /// Appends `more` places that the caller must fill. Returns the first of them.
  @inline(__always)
  func extend(by more: Int) -> UnsafeMutablePointer<UInt64> {
    if state.pointee.capacity &- state.pointee.count < more { grow(more) }
    let start = state.pointee.places + state.pointee.count
    state.pointee.count &+= more
    return start
  }

  @inline(never)
  private func grow(_ more: Int) {
    let capacity = max(state.pointee.capacity * 2, state.pointee.count + more)
    let larger = UnsafeMutablePointer<UInt64>.allocate(capacity: capacity)
    larger.update(from: state.pointee.places, count: state.pointee.count)
    state.pointee.places.deallocate()
    state.pointee.places = larger
    state.pointee.capacity = capacity
  }

  /// Sorts the places from index `start` on.
  func sort(from start: Int) {
    var part = UnsafeMutableBufferPointer(
      start: state.pointee.places + start, count: state.pointee.count - start)
    part.sort()
  }
}
