import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// The page holds everything it shows, and says of what it is.
struct ReportTests {
  private func file() throws -> ResultsFile {
    let sizes = [10, 100, 1_000].map { size in
      Workload(
        suite: "scale", name: "insert <&>", summary: "", parameters: ["documents": .integer(size)],
        operations: size
      ) { _ in
        // An operation's time grows with the root of the size.
        Trial(run: { .seconds(1e-6 * Double(size) * Double(size).squareRoot()) }, fileBytes: { 4_096 * size })
      }
    }
    let latencies = ["a", "b"].map { name in
      Workload(suite: "ycsb", name: name, summary: "", operations: 100) { context in
        Trial(run: {
          var histogram = LatencyHistogram()
          for time in 1...100 { histogram.record(UInt64(time * (context.engine == "lmdb" ? 1_000 : 2_000))) }
          return .latencies(histogram)
        })
      }
    }
    return ResultsFile(
      touchstone: "0.1.0+abc", started: "2026-11-20T10:00:00Z",
      machine: Machine(cpu: "a <cpu>", cores: 2, memoryBytes: 1, os: "Debian", filesystem: "ext4"),
      engines: [
        "lmdb": .init(library: "LMDB 0.9.24", settings: ["durability": "normal"]),
        "sqlite": .init(library: "SQLite 3.40.1", settings: ["durability": "normal"]),
      ],
      dataset: .init(name: "travel", documents: 7, jsonBytes: 1, sha256: String(repeating: "a", count: 64)),
      results: try ran(sizes + latencies, on: ["lmdb", "sqlite"], rounds: 3))
  }

  @Test func pageHoldsItsPicturesAndLoadsNothing() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let file = try file()
    let names = try Report([file]) { suite, _ in
      suite == "ycsb"
        ? Remarks(
          ["p99 < 1 ms & holds"], tables: [.init(heads: ["what", "holds"], rows: [["a < b", "yes"]])],
          pairs: [.init("sqlite", over: "lmdb")])
        : Remarks()
    }.write(
      to: directory.path)
    let pictures = names.filter { $0.hasSuffix(".svg") }
    expect(
      Set(names).isSuperset(of: [
        "index.html", "results.csv", "results.md", "benchmark.json", "scale-time.svg", "scale-file-size.svg",
        "scale-growth-insert----.svg", "ycsb-latency-a.svg", "ycsb-cost.svg",
      ]), "\(names)")
    let page = try String(contentsOfFile: "\(directory.path)/index.html", encoding: .utf8)
    expect(page.components(separatedBy: "<svg role=\"img\"").count, equals: pictures.count + 1)
    // Nothing is loaded: no scripts, no style sheets, no images, no addresses but the names of XML's own spaces.
    expect(!page.contains("<script") && !page.contains("<img") && !page.contains("stylesheet"))
    let addresses = page.matches(of: /https?:[^"' <]+/).map { String($0.output) }
    expect(addresses.allSatisfy { $0.hasPrefix("http://www.w3.org/") }, "\(Set(addresses))")
    // Under every picture: what, how, where.
    expect(page.components(separatedBy: "travel, 7 documents · durability normal").count > pictures.count)
    expect(page.contains("a &lt;cpu&gt;") && !page.contains("a <cpu>"))
    expect(page.contains("p99 &lt; 1 ms &amp; holds"))
    expect(page.contains("a &lt; b</th>") && !page.contains("a < b") && page.contains("sqlite over lmdb"))
    expect(page.contains("insert &lt;&amp;&gt; (documents=10)"))
    for name in pictures {
      let text = try String(contentsOfFile: "\(directory.path)/\(name)", encoding: .utf8)
      expect(XMLCheck.isWellFormed(text), "\(name)")
    }
  }

  @Test func pageBeginsWithWhoWinsAndFoldsEachSuite() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let file = try file()
    try Report([file]).write(to: directory.path)
    let page = try String(contentsOfFile: "\(directory.path)/index.html", encoding: .utf8)
    let parts = page.components(separatedBy: "<details>")
    // Each suite is folded, and its charts are folded inside it.
    let suites = file.results.map(\.suite).firstOccurrences()
    expect(parts.count, equals: 1 + 2 * suites.count)
    expect(page.components(separatedBy: "</details>").count, equals: parts.count)
    // Before the first fold: a table and a picture that compare all suites, with links to them.
    for (number, suite) in suites.enumerated() {
      let link = "<a href=\"#section-\(number)\">\(suite)</a>"
      expect(parts[0].components(separatedBy: link).count, equals: 3)
      expect(page.contains("id=\"section-\(number)\""))
    }
    expect(parts[0].contains("level in 3") && parts[0].contains("1.00×"))
    expect(parts[0].contains("Lower is better"))
    // Each workload has a row in the table of its suite, a row in its picture, and marks in the first picture.
    for label in file.results.map(\.label).firstOccurrences() {
      let escaped = HTML.escaped(label)
      expect(page.contains("<th scope=\"row\">\(escaped)</th>"), "\(label)")
      expect(page.contains("<span class=\"name\">\(escaped)</span>"), "\(label)")
      expect(parts[0].contains("<title>\(escaped), "), "\(label)")
    }
  }

  @Test func axisOfRatiosIsLogarithmicWhenTheyDifferMuch() {
    func axis(_ ratios: Double...) -> RatioAxis {
      RatioAxis(ratios.map { .init(engine: "lmdb", label: "read", ratio: $0, interval: $0...$0) })
    }
    let near = axis(0.8, 1.4)
    expect(!near.isLogarithmic && near.range.lowerBound == 0)
    expect(near.ticks, equals: [0, 0.25, 0.5, 0.75, 1, 1.25])
    let far = axis(0.1, 10)
    expect(far.isLogarithmic && far.ticks == [0.1, 0.2, 0.5, 1, 2, 5, 10])
    expect(far.percent(1), equals: "50.00%")
    // A value that has no logarithm is drawn at the edge.
    expect(axis(0, 10).percent(0), equals: "3.00%")
    expect(axis().ticks.contains(1))
  }

  @Test func chartOfOneBarIsLeftOut() throws {
    let workload = Workload(suite: "travel", name: "read", summary: "", operations: 10) { _ in
      Trial(run: { .seconds(1e-6) }, fileBytes: { 4_096 })
    }
    var file = try file()
    file.results = try ran([workload], on: ["lmdb"], rounds: 3)
    expect(Report([file]).sections.flatMap(\.charts).isEmpty)
  }

  /// As a peer has no files that it is asked for.
  @Test func aPictureLeavesOutWhatHasNoValues() throws {
    let workloads = ["read", "scan"].map { name in
      Workload(suite: "travel", name: name, summary: "", operations: 10) { context in
        Trial(run: { .seconds(1e-6) }, fileBytes: { context.engine == "peer" ? 0 : 4_096 })
      }
    }
    var file = try file()
    file.results = try ran(workloads, on: ["peer", "lmdb"], rounds: 3)
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let names = try Report([file]) { _, _ in Remarks() }.write(to: directory.path)
    expect(Set(names).isSuperset(of: ["travel-time.svg", "travel-file-size.svg"]))
    let scripts = Report([file]).sections.flatMap(\.charts).filter { $0.script.contains("\"peer\"") }
    expect(scripts.map(\.name).contains("travel-time") && !scripts.map(\.name).contains("travel-file-size"))
  }

  @Test func growthIsAPower() throws {
    let fit = try #require(PowerFit([(100, 20), (1, 2), (10_000, 200)]))
    expect(abs(fit.exponent - 0.5) < 1e-12)
    expect(abs(fit.factor - 2) < 1e-9)
    expect(fit.points.map(\.size), equals: [1, 100, 10_000])
    expect(PowerFit([(1, 2)]) == nil)
    expect(PowerFit([(1, 2), (1, 3)]) == nil)
    expect(PowerFit([(1, 0), (2, 3)]) == nil)
    let script = try Report([file()]).sections[0].charts.first { $0.name.contains("growth") }?.script
    expect(script?.contains("grows as the 0.50 power"), equals: true)
  }

  @Test func sameSuiteOfTwoFilesHasPicturesOfItsOwn() throws {
    let file = try file()
    let names = Report([file, file]).sections.flatMap(\.charts).map(\.name)
    expect(Set(names).count, equals: names.count)
  }

  @Test func gnuplotSaysWhatItDislikes() throws {
    let failure = #expect(throws: Gnuplot.Failure.self) {
      _ = try Gnuplot().svg(width: 100, height: 100, "plot nonsense(")
    }
    expect(failure?.description.contains("gnuplot failed"), equals: true)
  }
}
