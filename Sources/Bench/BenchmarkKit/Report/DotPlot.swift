#if canImport(Glibc)
  import Glibc
#endif

/// A picture of ratios, with a mark for each and a line for its 95% interval. It is as wide as its place, so it
/// is readable on any screen.
struct DotPlot {
  /// A line of the picture with its name.
  struct Row {
    /// The name, as HTML.
    let name: String
    /// The points, each lane below the one before.
    let lanes: [[Standing.Point]]
  }

  let rows: [Row]
  let palette: Palette
  /// What the picture shows, for screen readers.
  let title: String

  private static let laneHeight = 18

  func html() -> String {
    let axis = RatioAxis(rows.flatMap(\.lanes).joined())
    let lines = axis.ticks.map { tick in
      let x = axis.percent(tick)
      return "<line class=\"\(tick == 1 ? "one" : "grid")\" x1=\"\(x)\" x2=\"\(x)\" y1=\"-1\" y2=\"100%\"/>"
    }.joined()
    let scale =
      "<span></span><svg class=\"scale\" width=\"100%\" height=\"18\">"
      + axis.ticks.map { "<text x=\"\(axis.percent($0))\" y=\"13\">\(RatioAxis.text($0))</text>" }.joined()
      + "</svg>"
    let drawn = rows.map { row in
      let height = max(1, row.lanes.count) * DotPlot.laneHeight + 4
      let marks = row.lanes.enumerated().map { lane, points in
        points.map { mark($0, axis, y: lane * DotPlot.laneHeight + DotPlot.laneHeight / 2 + 2) }.joined()
      }
      return "<span class=\"name\">\(row.name)</span>"
        + "<svg width=\"100%\" height=\"\(height)\">\(lines)\(marks.joined())</svg>"
    }
    return """
      <div class="dots" role="img" aria-label="\(HTML.escaped(title))">
      \(([scale] + drawn + [scale]).joined(separator: "\n"))
      </div>
      """
  }

  private func mark(_ point: Standing.Point, _ axis: RatioAxis, y: Int) -> String {
    let low = axis.percent(point.interval.lowerBound)
    let high = axis.percent(point.interval.upperBound)
    let text =
      "\(point.label), \(point.engine): \(Format.ratio(point.ratio))× (95%: \(Format.interval(point.interval)))"
    return "<g><title>\(HTML.escaped(text))</title>"
      + "<line x1=\"\(low)\" x2=\"\(high)\" y1=\"\(y)\" y2=\"\(y)\" stroke=\"\(palette.colour(point.engine))\"/>"
      + palette.mark(point.engine, x: axis.percent(point.ratio), y: y) + "</g>"
  }
}

/// The axis of ratios: linear from 0, or logarithmic if the ratios differ by more than a factor of five.
struct RatioAxis {
  let isLogarithmic: Bool
  let range: ClosedRange<Double>
  /// The values that have a line and a number. 1 is among them.
  let ticks: [Double]

  init(_ points: some Sequence<Standing.Point>) {
    var low = 1.0
    var high = 1.0
    for point in points {
      for value in [point.ratio, point.interval.lowerBound, point.interval.upperBound]
      where value > 0 && value.isFinite {
        low = min(low, value)
        high = max(high, value)
      }
    }
    isLogarithmic = high / low > 5
    if isLogarithmic {
      range = low / 1.1...high * 1.1
      let steps = high / low > 1_000 ? [1.0] : high / low > 100 ? [1, 3] : [1, 2, 5]
      let powers = [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10, 100, 1_000, 1e4, 1e5, 1e6]
      ticks = powers.flatMap { power in steps.map { power * $0 } }.filter(range.contains)
    } else {
      range = 0...high * 1.05
      let step = [0.1, 0.25, 0.5, 1].first { high / $0 <= 6 } ?? 1
      ticks = (0...Int(range.upperBound / step)).map { Double($0) * step }
    }
  }

  /// The place of a value, as a percentage of the width.
  func percent(_ value: Double) -> String {
    let inside = min(max(value, range.lowerBound), range.upperBound)
    let share =
      isLogarithmic
      ? log(inside / range.lowerBound) / log(range.upperBound / range.lowerBound)
      : (inside - range.lowerBound) / (range.upperBound - range.lowerBound)
    return "\(Format.decimals(3 + 94 * share, 2))%"
  }

  /// A tick's number.
  static func text(_ tick: Double) -> String {
    tick >= 0.01 || tick == 0 ? "\(Format.shortest(tick))×" : "\(tick)×"
  }
}
