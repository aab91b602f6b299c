import Foundation
import TestSupport

/// The GitHub action, `action.yml`: its last step is run as a runner of GitHub does it.
struct ActionTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL

  /// What the tests need of the file. It has the shape that its own formatting gives it, so no general reader is needed.
  private struct Action {
    /// The defaults, by the names of the inputs.
    var inputs: [String: String] = [:]
    /// The variables of the step `Gate`, with expressions as values.
    var environment: [String: String] = [:]
    /// The script of the step `Gate`.
    var script = ""

    init() throws {
      let text = try String(contentsOf: root.appending(path: "action.yml"), encoding: .utf8)
      var path: [String] = []
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        let indent = line.prefix { $0 == " " }.count
        if path.last == "run: |", indent >= 8 || line.isEmpty {
          script += line.dropFirst(8) + "\n"
          continue
        }
        let words = line.trimmingCharacters(in: .whitespaces)
        guard !words.isEmpty, !words.hasPrefix("#") else { continue }
        path = Array(path.prefix(indent / 2)) + [words]
        let parts = words.split(separator: ": ", maxSplits: 1).map(String.init)
        if path.first == "inputs:", indent == 2 { inputs[String(words.dropLast())] = "" }
        if path.first == "inputs:", parts.count == 2, parts[0] == "default" {
          inputs[String(path[1].dropLast())] = parts[1].trimmingCharacters(
            in: CharacterSet(charactersIn: "\""))
        }
        // Steps are items of a list, so `env` stands a level deeper than its step.
        if path.contains("env:"), parts.count == 2 { environment[parts[0]] = parts[1] }
      }
    }
  }

  private static func names(in text: String, after prefix: String) -> [String] {
    text.components(separatedBy: prefix).dropFirst().map { rest in
      String(rest.prefix { $0.isLetter || $0 == "-" || $0 == "_" })
    }
  }

  @Test func itsInputsAreDescribed() throws {
    let action = try Action()
    expect(action.inputs.count >= 10 && action.environment.count >= 10 && action.script.contains("gate"))
    for value in action.environment.values {
      for name in Self.names(in: value, after: "inputs.") { expect(action.inputs[name] != nil, "\(name)") }
    }
    let page = try String(contentsOf: Self.root.appending(path: "docs/ci.md"), encoding: .utf8)
    for (name, value) in action.inputs {
      let row = "| `\(name)` | \(value.isEmpty ? "" : "`\(value)` ")|"
      expect(page.contains(row), "\(row)")
    }
    let options = Set(Self.names(in: action.script, after: "add --").map { "--" + $0 })
    try Tool.run { tool in
      let help = try tool.succeed("gate", "--help").output
      for option in options { expect(help.contains(option), "\(option)") }
    }
  }

  @Test(.disabled(if: isSanitized, "it takes a minute"))
  func itSavesABaselineAndFailsWhatBecomesSlower() throws {
    let action = try Action()
    try Tool.run { tool in
      func step(_ inputs: [String: String]) throws -> Tool.Result {
        let values = action.inputs.merging(inputs) { $1 }
        let variables = action.environment.map { name, value in
          var text = value
          for (input, content) in values { text = text.replacing("${{ inputs.\(input) }}", with: content) }
          return "\(name)=\(text.replacing("${{ github.action_path }}", with: tool.directory))"
        }
        for file in ["summary", "outputs"] where !FileManager.default.fileExists(atPath: tool.path(file)) {
          try tool.write("", to: file)
        }
        return try tool.run(
          "/usr/bin/env",
          variables + [
            "GITHUB_STEP_SUMMARY=\(tool.path("summary"))", "GITHUB_OUTPUT=\(tool.path("outputs"))",
            "RUNNER_TEMP=\(tool.directory)", "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
            action.script,
          ])
      }
      let options =
        "--only together --samples 3 --no-instructions --time-limit 0"
      var inputs = [
        "executable": Tool.executable, "suites": "harness", "store": "baselines", "options": options,
      ]
      try expect(step(inputs).status, equals: 4)
      inputs["save-as"] = "main"
      let first = try step(inputs)
      expect(first.status, equals: 0, "\(first.errors)")
      inputs["options"] = options + " --inject-delay 5000"
      let slower = try step(inputs)
      expect(slower.status, equals: 1, "\(slower.errors)")
      expect(slower.output.contains("::error "), "\(slower.output)")
      try expect(tool.read("summary").contains("slower than allowed"))
      try expect(tool.read("outputs"), equals: "status=4\nstatus=0\nstatus=1\n")
    }
  }
}
