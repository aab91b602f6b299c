import Foundation

/// Draws pictures as SVG with the program gnuplot.
public struct Gnuplot: Sendable {
  /// Why there is no picture.
  public struct Failure: Error, CustomStringConvertible {
    /// For people.
    public let description: String
  }

  /// Colours that people with any kind of colour vision tell apart (Okabe and Ito, 2008), one an engine.
  static let colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7F7F7F"]

  private let path: String

  /// The program on the search path. Throws `Failure` when there is none.
  public init() throws {
    guard let path = Program.path(of: "gnuplot") else {
      throw Failure(description: "pictures need gnuplot, and it isn't on the PATH (Debian: gnuplot-nox)")
    }
    self.path = path
  }

  /// Draws what `script` says into an SVG of that size in pixels, and returns its text.
  public func svg(width: Int, height: Int, _ script: String) throws -> String {
    let whole = """
      set terminal svg size \(width),\(height) font 'sans-serif,13' background '#ffffff'
      set encoding utf8
      set border 3 lc rgb '#888888'
      set tics nomirror
      set grid ytics lc rgb '#dddddd' lw 1
      set key top left horizontal samplen 1.5

      """ + script + "\n"
    // It reads all of a script before it draws.
    let drawn = try Program.run(path, input: whole, errors: .apart)
    let text = drawn.output
    guard drawn.status == 0, let start = text.firstRange(of: "<svg")?.lowerBound else {
      let said = drawn.errors.split(separator: "\n").prefix(3).joined(separator: " ")
      throw Failure(description: "gnuplot drew nothing: \(said)")
    }
    // Without the XML declaration, so that it can stand in a page.
    return String(text[start...])
  }

  /// Text as a gnuplot string: quoted, and with nothing in it that gnuplot would take for markup.
  static func quoted(_ text: String) -> String {
    let plain = text.replacing("\\", with: "/").replacing("\"", with: "'").replacing("\n", with: " ")
    return "\"" + plain + "\""
  }
}
