extension Array {
  /// Removes the first elements and returns them. What is returned shares no memory with what stays, so that one thread may use the
  /// one and another thread the other: the thread sanitizer doesn't see how arrays count their owners.
  package mutating func takeFirst(_ count: Int) -> [Element] {
    var taken: [Element] = []
    if count == self.count {
      swap(&taken, &self)
    } else {
      taken.append(contentsOf: self[..<count])
      removeFirst(count)
    }
    return taken
  }
}
