/// The colour and the mark of each engine, the same in all pictures of a report.
struct Palette {
  /// Colours that can be distinguished with any kind of colour vision (Okabe and Ito, 2008).
  static let colours = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5F5F5F"]

  /// Outlines of marks around the origin, in pixels. They differ without any colour.
  private static let outlines = [
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M0-6L6 0L0 6L-6 0Z",
    "M0-5.5L5.5 4.5H-5.5Z",
    "M0 5.5L-5.5-4.5H5.5Z",
    "M-5-2h3v-3h4v3h3v4h-3v3h-4v-3h-3Z",
    "M-5.5-2.5h11v5h-11Z",
  ]

  /// The engines, in the order of their colours.
  let engines: [String]

  private func index(_ engine: String) -> Int { engines.firstIndex(of: engine) ?? engines.count }

  /// The colour of an engine, as in CSS.
  func colour(_ engine: String) -> String { Palette.colours[index(engine) % Palette.colours.count] }

  /// The mark of an engine at a place of a picture, as SVG. `x` is a percentage.
  func mark(_ engine: String, x: String, y: Int) -> String {
    "<use href=\"#mark-\(index(engine) % Palette.outlines.count)\" x=\"\(x)\" y=\"\(y)\" fill=\"\(colour(engine))\"/>"
  }

  /// The outlines that marks refer to.
  var definitions: String {
    let paths = Palette.outlines.enumerated().map { "<path id=\"mark-\($0)\" d=\"\($1)\"/>" }
    return "<svg class=\"definitions\" aria-hidden=\"true\"><defs>\(paths.joined())</defs></svg>"
  }

  /// The marks of these engines with their names, as HTML.
  func legend(_ engines: [String]) -> String {
    let items = engines.map { engine in
      "<span><svg width=\"14\" height=\"14\" aria-hidden=\"true\">\(mark(engine, x: "7", y: 7))</svg> "
        + "\(HTML.escaped(engine))</span>"
    }
    return "<p class=\"legend\">\(items.joined(separator: " "))</p>"
  }
}
