/// What a table for a terminal shows of the parameters of its rows. Of a long list, what all rows of a workload have in common is
/// left out, and said once below the table.
package struct ParameterColumn {
  /// The values that all rows of a workload have in common, by suite and workload, where they are left out.
  private var common: [String: Parameters] = [:]
  /// The lines below the table.
  package private(set) var notes: [String] = []

  /// A list that is longer than this is shortened.
  private static let longest = 40
  private static let lineWidth = 80

  /// A column for `results`, which are all rows of the table.
  package init(_ results: [WorkloadResult]) {
    let groups = Dictionary(grouping: results, by: Self.name)
    for name in results.map(Self.name).firstOccurrences() {
      guard let group = groups[name], group.contains(where: { $0.parameters.text.count > Self.longest })
      else {
        continue
      }
      let shared = group[0].parameters.filter { key, value in group.allSatisfy { $0.parameters[key] == value }
      }
      common[name] = shared
      if !shared.isEmpty { notes += Self.lines(group[0].workload + ":", shared) }
    }
  }

  private static func name(_ result: WorkloadResult) -> String { "\(result.suite) \(result.workload)" }

  /// The parameters of a row.
  package func text(_ result: WorkloadResult) -> String {
    guard let left = common[Self.name(result)] else { return result.parameters.text }
    return result.parameters.filter { left[$0.key] == nil }.text
  }

  /// The workload with the parameters of a row: `mix (threads=2)`.
  package func label(_ result: WorkloadResult) -> String {
    let text = text(result)
    return text.isEmpty ? result.workload : "\(result.workload) (\(text))"
  }

  /// The parameters after a title, in lines that fit a terminal.
  private static func lines(_ title: String, _ parameters: Parameters) -> [String] {
    var lines = [title]
    let pairs = parameters.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    for (number, pair) in pairs.enumerated() {
      let word = pair + (number + 1 < pairs.count ? "," : "")
      if lines[lines.count - 1].count + 1 + word.count > lineWidth, lines[lines.count - 1] != title {
        lines.append(" ")
      }
      lines[lines.count - 1] += " " + word
    }
    return lines
  }
}
