import Foundation
import TestSupport
import Testing

/// `touchstone users`, and a server that knows the users.
@Suite struct UsersCommandTests {
  /// Prepares a directory, and a file with a password.
  private func prepare(_ tool: Tool) throws {
    try FileManager.default.createDirectory(atPath: tool.path("dir"), withIntermediateDirectories: false)
    try tool.write("secret\n", to: "password")
    try tool.write("other\n", to: "new")
  }

  private func users(_ tool: Tool, _ arguments: String...) throws -> Tool.Result {
    try tool.run(Tool.executable, ["users", "dir"] + arguments)
  }

  @Test func usersAreAddedChangedAndRemoved() throws {
    try Tool.run { tool in
      try prepare(tool)
      try expect(users(tool, "list").output, equals: "")
      try expect(
        users(tool, "add", "me", "--admin", "--password-file", "password").output,
        equals: "added me, an administrator, in dir/server-admins\n")
      try expect(
        users(
          tool, "add", "carol", "--roles", "readers,writers", "--engine", "lmdb", "--password-file",
          "password"
        )
        .output, equals: "added carol\n")
      // The variable is another source of a password.
      var withVariable = tool
      withVariable.environment["TOUCHSTONE_PASSWORD"] = "secret"
      try expect(users(withVariable, "add", "dave").output, equals: "added dave\n")
      try expect(users(tool, "list").output, equals: "me\t_admin\ncarol\treaders,writers\ndave\n")
      try expect(
        users(tool, "list", "--json").lines[1], equals: #"{"name":"carol","roles":["readers","writers"]}"#)
      let file = try tool.succeed("get", "dir/_users", "org.couchdb.user:carol").output
      expect(!file.contains("secret") && file.contains(#""password_scheme":"pbkdf2""#))
      let hash = file.firstRange(of: /"derived_key":"[0-9a-f]*"/).map { String(file[$0]) }
      try expect(users(tool, "roles", "carol", "--roles", "a").output, equals: "changed the roles of carol\n")
      try expect(users(tool, "roles", "carol").status, equals: 0)
      try expect(users(tool, "password", "carol", "--password-file", "new").status, equals: 0)
      let changed = try tool.succeed("get", "dir/_users", "org.couchdb.user:carol").output
      expect(changed.contains(#""roles":[]"#) && hash.map { changed.contains($0) } == false)
      try expect(users(tool, "password", "me", "--admin", "--password-file", "new").status, equals: 0)
      try expect(
        users(tool, "remove", "dave").status == 0 && users(tool, "remove", "me", "--admin").status == 0)
      try expect(users(tool, "list").output, equals: "carol\n")
    }
  }

  @Test func whatIsWrongIsSaid() throws {
    try Tool.run { tool in
      try prepare(tool)
      try expect(users(tool, "add", "a", "--password-file", "password").status, equals: 0)
      for (arguments, status, word) in [
        (["add", "a", "--password-file", "password"], 1, "already"),
        (["add", "_b", "--password-file", "password"], 2, "underscore"),
        (["add", "b:c", "--password-file", "password"], 2, "not allowed"),
        (["add", "b", "--roles", "_admin", "--password-file", "password"], 2, "system roles"),
        (["add", "b"], 2, "--password-file"), (["add"], 2, "NAME"), (["list", "a"], 2, "unexpected"),
        (["remove", "b"], 1, "no user"), (["remove", "b", "--admin"], 1, "no user"),
        (["password", "b", "--password-file", "password"], 1, "no user"), (["roles", "b"], 1, "no user"),
        (["password", "b", "--admin", "--password-file", "password"], 1, "no administrator"),
        (["list", "--roles", "a"], 2, "--roles"), (["roles", "a", "--admin"], 2, "--admin"),
        (["show"], 2, "show"),
      ] as [([String], Int32, String)] {
        let result = try tool.run(Tool.executable, ["users", "dir"] + arguments)
        expect(result.status == status && result.errors.contains(word), "\(arguments): \(result)")
      }
      try expect(tool("users", "none", "list").status, equals: 2)
      // A password is no argument.
      try expect(users(tool, "add", "x", "secret").status, equals: 2)
    }
  }

  @Test func aServerLetsThemIn() throws {
    try Tool.run { tool in
      try prepare(tool)
      try expect(users(tool, "add", "me", "--admin", "--password-file", "password").status, equals: 0)
      let server = try Child(
        tool, Tool.executable, ["serve", "dir", "--create", "--engine", "lmdb", "--listen", "127.0.0.1:0"])
      defer { server.kill() }
      try server.wait { server.output.contains("\n") }
      let url = server.output.split(separator: "\n").first.map(String.init) ?? ""
      func status(_ arguments: String...) throws -> String {
        try tool.run(
          "/usr/bin/env", ["curl", "-s", "-o", "out", "-w", "%{http_code}"] + arguments
        ).output
      }
      try expect(status(url + "_all_dbs"), equals: "401")
      try expect(status("-u", "me:secret", url + "_all_dbs"), equals: "200")
      try expect(tool.read("out").contains(#"["_replicator","_users"]"#))
      try expect(status("-u", "me:secret", "-X", "PUT", url + "db"), equals: "201")
      // Users that are added while the server runs.
      try expect(
        users(tool, "add", "carol", "--roles", "readers", "--password-file", "password").status, equals: 0)
      try expect(status("-u", "carol:secret", url + "db"), equals: "403")
      try expect(
        status(
          "-u", "me:secret", "-X", "PUT", url + "db/_security", "-d", #"{"members":{"roles":["readers"]}}"#),
        equals: "200")
      try expect(status("-u", "carol:secret", url + "db"), equals: "200")
      try expect(users(tool, "password", "carol", "--password-file", "new").status, equals: 0)
      try eventually { try status("-u", "carol:secret", url + "db") == "401" }
      try expect(status("-u", "carol:other", url + "db"), equals: "200")
      server.kill(SIGTERM)
      try expect(server.wait().status, equals: 0)
    }
  }
}
