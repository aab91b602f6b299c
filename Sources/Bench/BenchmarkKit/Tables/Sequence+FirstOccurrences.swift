extension Sequence where Element: Hashable {
  /// Each element once, in the order of its first occurrence.
  package func firstOccurrences() -> [Element] {
    var seen: Set<Element> = []
    return filter { seen.insert($0).inserted }
  }
}

extension [WorkloadResult] {
  /// The engines of the results, in order, each once.
  package var engines: [String] { map(\.engine).firstOccurrences() }
  /// The results with the same suite, workload and parameters, a row for each.
  package var rows: [[WorkloadResult]] {
    let groups = Dictionary(grouping: self) { "\($0.suite) \($0.label)" }
    return map { "\($0.suite) \($0.label)" }.firstOccurrences().compactMap { groups[$0] }
  }
}
