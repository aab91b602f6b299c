/// The exact sum of finite doubles, rounded once to the nearest one.
///
/// It keeps a list of doubles of growing size, no two of which have bits in common, whose sum is the exact sum (J. R. Shewchuk's growing
/// expansion). Partial sums must stay finite.
package func exactSum(_ doubles: [Double]) -> Double {
  var parts: [Double] = []
  for double in doubles {
    var carried = double
    var kept: [Double] = []
    for part in parts {
      let (large, small) = abs(carried) < abs(part) ? (part, carried) : (carried, part)
      carried = large + small
      let lost = small - (carried - large)
      if lost != 0 { kept.append(lost) }
    }
    parts = kept + [carried]
  }
  guard var sum = parts.popLast() else { return 0 }
  while let next = parts.popLast() {
    let rounded = sum + next
    let lost = next - (rounded - sum)
    sum = rounded
    if lost == 0 { continue }
    // What is exactly in the middle of two doubles was rounded without a look at the smaller parts.
    if let below = parts.last, (below < 0) == (lost < 0) {
      let twice = 2 * lost
      let other = sum + twice
      if other - sum == twice { sum = other }
    }
    break
  }
  return sum
}
