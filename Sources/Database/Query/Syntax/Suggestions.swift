/// Finds names similar to a misspelled one.
package enum Suggestions {
  /// The text ` (did you mean A or B?)`, or an empty text.
  package static func hint(for name: String, among names: some Sequence<String>) -> String {
    let near = nearest(to: name, among: names)
    return near.isEmpty ? "" : " (did you mean \(near.joined(separator: " or "))?)"
  }

  /// The nearest names, at most three, nearest first.
  package static func nearest(to name: String, among names: some Sequence<String>) -> [String] {
    let wanted = letters(name)
    guard wanted.count <= 40 else { return [] }
    let reach = max(1, wanted.count / 3)
    let near = names.compactMap { candidate -> (name: String, distance: Int)? in
      let letters = letters(candidate)
      let shorter = min(wanted.count, letters.count)
      if shorter >= 3, wanted.starts(with: letters) || letters.starts(with: wanted) { return (candidate, 1) }
      let distance = distance(wanted, letters)
      return distance <= reach ? (candidate, distance) : nil
    }.sorted { ($0.distance, $0.name) < ($1.distance, $1.name) }
    return near.prefix(3).filter { $0.distance <= near[0].distance + 1 }.map(\.name)
  }

  /// The letters for comparison: upper case, without underscores, so that SUB_STR matches SUBSTR.
  private static func letters(_ name: String) -> [UInt8] {
    name.uppercased().utf8.filter { $0 != UInt8(ascii: "_") }
  }

  /// The number of letters to insert, delete, change or swap with the next one.
  private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
        row.append(cost)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }
}
