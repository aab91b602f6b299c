extension StringProtocol {
  /// The text without the characters at both ends that `isLeftOut` says: by default blanks, tabs and line ends.
  package func trimming(_ isLeftOut: (Character) -> Bool = \.isWhitespace) -> SubSequence {
    guard let first = firstIndex(where: { !isLeftOut($0) }), let last = lastIndex(where: { !isLeftOut($0) })
    else { return self[endIndex...] }
    return self[first...last]
  }
}
