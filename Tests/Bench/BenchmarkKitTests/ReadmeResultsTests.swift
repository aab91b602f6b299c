import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// The README's results are those of `results/travel.json`, and of the version that is released.
struct ReadmeResultsTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL
  private let section: String
  private let file: ResultsFile

  init() throws {
    let text = try String(contentsOf: Self.root.appending(path: "README.md"), encoding: .utf8)
    let start = try #require(text.range(of: "\n## Results\n"))
    let end = try #require(text[start.upperBound...].range(of: "\n## "))
    section = String(text[start.upperBound..<end.lowerBound])
    file = try ResultsFile(
      validating: Data(contentsOf: Self.root.appending(path: "results/travel.json")))
  }

  /// The rows of the table whose first title is `title`, without the titles.
  private func table(_ title: String) throws -> (titles: [String], rows: [[String]]) {
    let lines = section.split(separator: "\n", omittingEmptySubsequences: false)
    let first = try #require(lines.firstIndex { $0.hasPrefix("| \(title) |") })
    let rows = lines[first...].prefix { $0.hasPrefix("|") }.map { line in
      line.dropFirst().dropLast().split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    }
    return (rows[0], Array(rows.dropFirst(2)))
  }

  private var engines: [String] { file.results.engines.filter { $0 != "peer" } }

  @Test func theyNameTheVersionAndTheDay() throws {
    let source = try String(
      contentsOf: Self.root.appending(path: "Sources/Facade/Touchstone/Version.swift"), encoding: .utf8)
    let version = try #require(source.firstMatch(of: /touchstoneVersion = "((\d+\.\d+)\.\d+)"/))
    expect(file.touchstone.prefix { $0 != "+" } == version.1, "\(file.touchstone) isn't of \(version.1)")
    let day = try #require(file.started.firstMatch(of: /^(\d+)-(\d+)-(\d+)T/))
    let months = [
      "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
      "November", "December",
    ]
    let month = try months[#require(Int(day.2)) - 1]
    let beginning = try "\nTouchstone \(version.2), on \(#require(Int(day.3))) \(month) \(day.1), "
    expect(section.hasPrefix(beginning), "\(section.prefix(80))")
  }

  @Test func eachCellIsTheFilesMedianAndRatio() throws {
    let (titles, rows) = try table("travel")
    expect(Set(titles.dropFirst()), equals: Set(file.results.engines))
    var cells = 0
    for row in rows {
      for (engine, cell) in zip(titles, row).dropFirst() {
        let result = file.results.first {
          $0.suite == "travel" && $0.workload == row[0] && $0.engine == engine
        }
        guard let result else {
          expect(cell, equals: "-", "\(row[0]) \(engine)")
          continue
        }
        let shown = try #require(cell.wholeMatch(of: #/([0-9.]+) (ns|µs|ms|s)( \(([0-9.]+)\))?/#))
        let units: [Substring: Double] = ["ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1]
        let unit: Double = units[shown.2] ?? 0
        let number: Double = try #require(Double(shown.1))
        let seconds = number * unit
        expect(abs(seconds / result.secondsPerOperation - 1) < 0.006, "\(row[0]) \(engine): \(cell)")
        expect((shown.4 == nil) == (result.limit == nil), "\(row[0]) \(engine): \(cell)")
        if let limit = result.limit, let ratio = shown.4.flatMap({ Double($0) }) {
          expect(abs(ratio - limit.normalized) < 0.006, "\(row[0]) \(engine): \(cell)")
        }
        cells += 1
      }
    }
    expect(cells, equals: file.results.filter { $0.suite == "travel" }.count)
  }

  @Test func whichEngineForWhatIsTheBenchsAnswer() throws {
    let answers = Advice(file.results, engines: engines).lines
    let (_, rows) = try table("use")
    expect(rows.map { $0[0] }, equals: answers.map { String($0.prefix { $0 != ":" }) })
    for (row, answer) in zip(rows, answers) {
      let found = try #require(answer.firstMatch(of: #/: (([a-z-]+, )*[a-z-]+)( are level)?, /#))
      let fastest = found.1.split(separator: ", ").map { "`\($0)`" }.joined(separator: " and ")
      expect(row[1], equals: fastest + (found.3 == nil ? "" : ", level"))
      let said = answer.matches(of: /([0-9.]+)x as (fast as )?([a-z-]+)/).map {
        (String($0.3), Double($0.1) ?? 0)
      }
      let shown = row[2].matches(of: /`([a-z-]+)` ([0-9.]+)x/).map { (String($0.1), Double($0.2) ?? 0) }
      expect(shown.map(\.0), equals: said.map(\.0), "\(answer)")
      // Two digits are shown.
      for (left, right) in zip(shown, said) {
        expect(abs(left.1 / right.1 - 1) < 0.051, "\(answer): \(left)")
      }
    }
  }
}
