/// Draws charts as SVG with the program gnuplot.
package struct Gnuplot: Sendable {
  /// A failure to draw.
  package struct Failure: Error, CustomStringConvertible {
    /// The reason, for people.
    package let description: String
  }

  private let path: String

  /// Finds the program on the search path. Throws `Failure` if it isn't there.
  package init() throws {
    guard let path = Program.path(of: "gnuplot") else {
      throw Failure(
        description:
          "drawing the pictures needs gnuplot, which isn't on the PATH; install the Debian package gnuplot-nox"
      )
    }
    self.path = path
  }

  /// Runs `script` and returns the text of an SVG with that size in pixels. Throws `Failure`.
  package func svg(width: Int, height: Int, _ script: String) throws -> String {
    let whole = """
      set terminal svg size \(width),\(height) font 'sans-serif,13' background '#ffffff'
      set encoding utf8
      set border 3 lc rgb '#888888'
      set tics nomirror
      set grid ytics lc rgb '#dddddd' lw 1
      set key top left horizontal samplen 1.5

      """ + script + "\n"
    // gnuplot reads the whole script before it draws.
    let drawn = try Program.run(path, input: whole, errors: .apart)
    let text = drawn.output
    guard drawn.status == 0, let start = text.firstRange(of: "<svg")?.lowerBound else {
      let said = drawn.errors.split(separator: "\n").prefix(3).joined(separator: " ")
      throw Failure(description: "gnuplot failed: \(said)")
    }
    // The XML declaration is left out, so that the SVG can be put into a page.
    return String(text[start...])
  }

  /// Quotes text as a gnuplot string, and replaces the characters that gnuplot would treat as markup.
  static func quoted(_ text: String) -> String {
    let plain = text.replacing("\\", with: "/").replacing("\"", with: "'").replacing("\n", with: " ")
    return "\"" + plain + "\""
  }
}
