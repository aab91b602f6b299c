/// Leaves out steps of a failing script for as long as it still fails, at most `attempts` times. Returns the steps that are
/// left, and how they fail; nil if the whole script doesn't.
func reduce<Step>(
  _ steps: [Step], attempts: Int, failure: ([Step]) -> String?
) -> (steps: [Step], message: String)? {
  guard var message = failure(steps) else { return nil }
  var smallest = steps
  var left = attempts
  var size = max(1, smallest.count / 2)
  while size >= 1, left > 0 {
    var start = 0
    var shrunk = false
    while start < smallest.count, left > 0 {
      var candidate = smallest
      candidate.removeSubrange(start..<min(start + size, candidate.count))
      left -= 1
      if let still = failure(candidate) {
        (smallest, message, shrunk) = (candidate, still, true)
      } else {
        start += size
      }
    }
    if !shrunk || size > 1 { size /= 2 }
  }
  return (smallest, message)
}
