import Foundation
import Storage

/// A tool of an engine's library that checks a closed file.
public struct FileTool: Sendable {
  /// The name of the tool, followed by its arguments.
  public let command: [String]
  /// The expected output without surrounding white space; nil if only the exit status counts.
  public let output: String?

  /// Makes a tool. See the properties.
  public init(_ command: [String], output: String? = nil) {
    self.command = command
    self.output = output
  }
}

/// Runs many scripts on an engine, each in its own file. They run in a child process, so that a crash is a
/// normal failure. A script that fails is shrunk.
struct ScriptCampaign {
  let suite: ConformanceSuite
  /// The maximum number of child processes for shrinking one failure, and the maximum time.
  var shrinkingRuns = 300
  var shrinkingSeconds = 90.0

  /// Runs the scripts of these numbers. Throws at the first failure, with the shrunk script.
  func run(_ numbers: Range<Int>) throws {
    var next = numbers.lowerBound
    while next < numbers.upperBound {
      // Several scripts per process, so that starting processes takes little of the time.
      let end = min(next + 25, numbers.upperBound)
      if let failure = try failure(of: next..<end, keep: nil, valueLimit: .max) {
        throw ConformanceFailure(try explain(failure.number, failure.text))
      }
      next = end
    }
  }

  /// Runs some scripts in a child process. Nil if all of them pass.
  private func failure(of numbers: Range<Int>, keep: [Int]?, valueLimit: Int) throws -> (
    number: Int, text: String
  )? {
    guard suite.childPath != nil, suite.subject.keepsFiles else {
      return failureHere(of: numbers, keep, valueLimit)
    }
    let child = try suite.startChild(
      "scripts",
      [
        suite.path("script"), "\(suite.seed)", "\(numbers.lowerBound)", "\(numbers.upperBound)",
        "\(valueLimit)", keep.map(NumberList.text) ?? "all",
      ])
    let ending = try child.wait(seconds: 600)
    if ending == .exited(0) { return nil }
    let lines = child.outputText.split(separator: "\n").map(String.init)
    let begun = lines.filter { $0.hasPrefix("script ") }.last?.dropFirst("script ".count)
    guard let begun, let number = Int(begun) else {
      throw ConformanceFailure("the child \(ending) before a script: \(child.outputText) \(child.errorText)")
    }
    let said = lines.last { $0.hasPrefix("failed: ") }
    return (number, said ?? "the process \(ending); \(child.errorText.suffix(300))")
  }

  /// Runs some scripts in this process.
  private func failureHere(of numbers: Range<Int>, _ keep: [Int]?, _ valueLimit: Int) -> (
    number: Int, text: String
  )? {
    for number in numbers {
      var script = ScriptGenerator.script(seed: suite.seed, number)
      script.valueLimit = valueLimit
      if let keep { script = script.keeping(Set(keep)) }
      let path = suite.path("script-\(UInt64.random(in: 0...UInt64.max))")
      defer { removeFile(path) }
      do {
        var run = try ScriptRun(script) { try suite.open(path) }
        try run.go()
      } catch { return (number, "\(error)") }
    }
    return nil
  }

  /// Shrinks a failing script by leaving out parts while it still fails.
  private func explain(_ number: Int, _ text: String) throws -> String {
    let whole = ScriptGenerator.script(seed: suite.seed, number)
    let deadline = Date() + shrinkingSeconds
    var runs = 0
    var (kept, valueLimit, text) = (whole.numbers, Int.max, text)
    /// Whether the script still fails, with any error.
    func fails(_ numbers: [Int], _ limit: Int) throws -> Bool {
      guard runs < shrinkingRuns, Date() < deadline else { return false }
      runs += 1
      guard let failure = try failure(of: number..<(number + 1), keep: numbers, valueLimit: limit) else {
        return false
      }
      text = failure.text
      return true
    }
    guard try fails(kept, valueLimit) else {
      return "script \(number) of seed \(suite.seed) fails with others before it, not by itself: \(text)"
    }
    var size = kept.count / 2
    while size > 0 {
      var start = 0
      while start < kept.count {
        let fewer = Array(kept[..<start] + kept[min(start + size, kept.count)...])
        if try fails(fewer, valueLimit) { kept = fewer } else { start += size }
      }
      size /= 2
    }
    for limit in [0, 16, 300, 2_000, 5_000, 20_000, 100_000] where try fails(kept, limit) {
      valueLimit = limit
      break
    }
    var script = whole.keeping(Set(kept))
    script.valueLimit = valueLimit
    let arguments = "\(suite.seed) \(number) \(number + 1) \(valueLimit) \(NumberList.text(kept))"
    return """
      script \(number): \(text)
      again: storage-child storage scripts \(suite.subject.engine.name) \(suite.key.map { hexadecimal($0) } ?? "-") FILE \
      \(arguments)
      \(script)
      """
  }
}

extension Child {
  /// `scripts PATH SEED FROM TO LIMIT NUMBERS` runs the scripts FROM to before TO, each in a new file. Values
  /// have at most LIMIT bytes. NUMBERS lists the steps to run, or is `all`. Each file is then checked with
  /// the tools of its library, and opened in another process.
  func scripts() throws {
    let seed = UInt64(arguments[1]) ?? 0
    for number in try number(2)..<(try number(3)) {
      say("script \(number)")
      let path = arguments[0] + ".\(number)"
      var script = ScriptGenerator.script(seed: seed, number)
      script.valueLimit = try self.number(4)
      if arguments[5] != "all" { script = script.keeping(Set(NumberList.numbers(arguments[5]))) }
      defer { removeFile(path) }
      var run = try ScriptRun(script) {
        try engine.open(path, EngineOptions(durability: .none, key: key))
      }
      try run.go()
      try check(path)
      try expectContent(run.content, path)
    }
  }

  /// Checks a file with its library's tools.
  private func check(_ path: String) throws {
    for tool in tools(engine.name, path, key) {
      let child = try ChildProcess.start("/usr/bin/env", tool.command)
      let ending = try child.wait()
      let output = child.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
      guard ending == .exited(0), tool.output.map({ $0 == output }) ?? true else {
        throw ConformanceFailure(
          "\(tool.command.joined(separator: " ")) \(ending): \(output.prefix(500)) \(child.errorText)")
      }
    }
  }

  /// Opens a file in another process, which reads all of it, and compares the content.
  private func expectContent(_ content: Content, _ path: String) throws {
    let arguments = ["probe", engine.name, key.map { hexadecimal($0) } ?? "-", "checked", path]
    let child = try ChildProcess.start(program, childArguments + arguments)
    let ending = try child.wait()
    let line = child.outputText.split(separator: "\n").first.map(String.init)
    guard ending == .exited(0), line == "content \(content)" else {
      throw ConformanceFailure(
        "another process \(ending): \(line ?? ""), wanted \(content) \(child.errorText)")
    }
  }
}

/// Removes a file and the engine's files beside it.
private func removeFile(_ path: String) {
  let (directory, name) = ((path as NSString).deletingLastPathComponent, (path as NSString).lastPathComponent)
  for other in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
  where other.hasPrefix(name) { try? FileManager.default.removeItem(atPath: directory + "/" + other) }
}

extension ConformanceSuite {
  static let scriptBehaviours: [Behaviour] = [
    Behaviour("random transactions agree with a sorted map, with the library's tools and in another process")
    {
      suite in
      // Each script has 40 transactions.
      try ScriptCampaign(suite: suite).run(0..<(suite.isLong ? 250 : 3))
    }
  ]
}
