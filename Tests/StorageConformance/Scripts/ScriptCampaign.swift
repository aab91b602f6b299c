import Foundation
import Storage

/// A tool of an engine's library that reads a file while nobody has it open, and says whether it is sound.
public struct FileTool: Sendable {
  /// The name of the tool and its arguments.
  public let command: [String]
  /// All that it may say, apart from blanks around it; nil when only its exit status counts.
  public let output: String?

  /// A tool; see the properties.
  public init(_ command: [String], output: String? = nil) {
    self.command = command
    self.output = output
  }
}

/// Scripts on an engine, many of them, each in a file of its own: run in a child process, so that a crash is a failure like
/// any other. One that fails is made smaller.
struct ScriptCampaign {
  let suite: ConformanceSuite
  /// How many children one failure may take to be made smaller, and how long that may last.
  var shrinkingRuns = 300
  var shrinkingSeconds = 90.0

  /// Runs the scripts of these numbers. Throws with the smallest script that fails as the first of them does.
  func run(_ numbers: Range<Int>) throws {
    var next = numbers.lowerBound
    while next < numbers.upperBound {
      // Several a process, so that most of the time is theirs.
      let end = min(next + 25, numbers.upperBound)
      if let failure = try failure(of: next..<end, keep: nil, valueLimit: .max) {
        throw ConformanceFailure(try explain(failure.number, failure.text))
      }
      next = end
    }
  }

  /// Runs some scripts in a child. Nil when all of them pass.
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

  /// Leaves out of a script that fails whatever it fails without.
  private func explain(_ number: Int, _ text: String) throws -> String {
    let whole = ScriptGenerator.script(seed: suite.seed, number)
    let deadline = Date() + shrinkingSeconds
    var runs = 0
    var (kept, valueLimit, text) = (whole.numbers, Int.max, text)
    /// Whether it still fails, in whatever way.
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
      again: storage-child scripts \(suite.subject.engine.name) \(suite.key.map { hexadecimal($0) } ?? "-") FILE \
      \(arguments)
      \(script)
      """
  }
}

extension Child {
  /// `scripts PATH SEED FROM TO LIMIT NUMBERS` runs the scripts FROM to before TO, each in a new file, with values of LIMIT
  /// bytes at most and those of its steps that NUMBERS lists, or `all`. Looks at each file with the tools of its library
  /// and opens it in another process.
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

  /// Looks at a file with its library's tools.
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

  /// Opens a file in a process of its own, which reads all of it.
  private func expectContent(_ content: Content, _ path: String) throws {
    let arguments = ["probe", engine.name, key.map { hexadecimal($0) } ?? "-", "checked", path]
    let child = try ChildProcess.start(CommandLine.arguments[0], arguments)
    let ending = try child.wait()
    let line = child.outputText.split(separator: "\n").first.map(String.init)
    guard ending == .exited(0), line == "content \(content)" else {
      throw ConformanceFailure(
        "another process \(ending): \(line ?? ""), wanted \(content) \(child.errorText)")
    }
  }
}

/// Removes a file and what its engine keeps beside it.
private func removeFile(_ path: String) {
  let (directory, name) = (
    (path as NSString).deletingLastPathComponent, (path as NSString).lastPathComponent
  )
  for other in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
  where other.hasPrefix(name) { try? FileManager.default.removeItem(atPath: directory + "/" + other) }
}

extension ConformanceSuite {
  static let scriptBehaviours: [Behaviour] = [
    Behaviour("random transactions agree with a sorted map, with the library's tools and in another process")
    {
      suite in
      // 40 transactions each.
      try ScriptCampaign(suite: suite).run(0..<(suite.isLong ? 250 : 5))
    }
  ]
}
