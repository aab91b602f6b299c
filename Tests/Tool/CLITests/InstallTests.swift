import TestSupport

/// `make install` and `make uninstall`, of the build that is tested.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/make"), "there is no make"))
struct InstallTests {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardizedFileURL.path

  @Test func whatIsInstalledRunsAndIsRemovedWhole() throws {
    try Tool.run { tool in
      let scratch = URL(filePath: Tool.executable).deletingLastPathComponent().deletingLastPathComponent()
        .path
      func make(_ target: String) throws {
        let result = try tool.run(
          "/usr/bin/make",
          [
            "-s", "-C", Self.root, target, "SCRATCH=\(scratch)", "PREFIX=/usr",
            "DESTDIR=\(tool.path("root"))",
            // A library may have been built.
            "LIBRARY=\(tool.path("none"))",
          ])
        expect(result.status, equals: 0, "\(result.output)\(result.errors)")
      }
      func files() throws -> [String] {
        try tool.run("/usr/bin/find", ["root", "-type", "f", "-printf", "%P\n"]).lines.sorted()
      }
      try make("install")
      try expect(
        files(),
        equals: [
          "usr/bin/touchstone", "usr/bin/touchstone-scripts",
          "usr/share/bash-completion/completions/touchstone",
          "usr/share/fish/vendor_completions.d/touchstone.fish", "usr/share/man/man1/touchstone.1",
          "usr/share/zsh/site-functions/_touchstone",
        ])
      let version = try tool.run(tool.path("root/usr/bin/touchstone"), ["--version"])
      expect(version.status == 0 && version.output.hasPrefix("touchstone "), "\(version.errors)")
      try expect(
        tool.read("root/usr/share/man/man1/touchstone.1"), equals: tool.succeed("help", "--man").output)
      try expect(
        tool.read("root/usr/share/bash-completion/completions/touchstone"),
        equals: tool.succeed("completions", "bash").output)
      try make("uninstall")
      try expect(files(), equals: [])
    }
  }
}
