import Foundation
import TestSupport
import Testing
import Touchstone

@Suite("The names of databases in a folder") struct DatabaseFolderNameTests {
  @Test("that break a rule are refused with the reason") func refused() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path)
    let long = String(repeating: "a", count: 245)
    let slashes = String(repeating: "/", count: 82)
    for (name, reason) in [
      ("", "empty"), (".", "means a directory"), ("..", "means a directory"), (".a", "begins with a dot"),
      ("../a", "begins with a dot"), ("a\0b", "zero byte"), ("a\nb", "U+000A"), ("\u{7f}", "U+007F"),
      ("a\u{85}", "U+0085"), ("\u{1}", "U+0001"), ("a.touchstone", "without that suffix"),
      (".touchstone", "begins with a dot"), (long, "245 bytes"), (slashes, "246 bytes"),
      (String(repeating: "\u{1f600}", count: 62), "248 bytes"),
    ] {
      expect(!DatabaseFolder.isValidName(name))
      expect(!folder.exists(name))
      let operations: [() throws -> Void] = [
        { _ = try folder.open(name) }, { _ = try folder.openExisting(name) }, { try folder.delete(name) },
        { try folder.move(name, to: "b") }, { try folder.move("b", to: name) },
        { try folder.install(name, from: "b") }, { try folder.replace(name, with: "b") },
        { try folder.replace("b", withDatabase: name) }, { _ = try folder.path(of: name) },
      ]
      for operation in operations {
        let error = try thrown(DatabaseError.self, by: operation)
        expect(error?.code, equals: .invalidName)
        expect(error?.message.contains(reason), equals: true, "\(error?.message ?? "-")")
      }
      try expect(directory.names(), equals: [])
    }
  }

  @Test("that are valid are told apart by their bytes, and stay in the folder") func accepted() throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.file("f"))
    let names = [
      "a", "A", " ", "a b", "a.b", "a_$()+-/0", "/", "//", "a/", "/etc/passwd", "a/../../b", "%", "%2F",
      "%25", "%2",
      "%252F", "a%", "\\", ":", "*?<>|\"", "caf\u{e9}", "cafe\u{301}", "/\u{301}", "\u{1f600}", "touchstone",
      "a.touchstone.b", "catalog.cblite2", String(repeating: "a", count: 244),
      String(repeating: "/", count: 81),
    ]
    for name in names {
      expect(DatabaseFolder.isValidName(name))
      let database = try folder.open(name)
      expect(Array(database.name.utf8), equals: Array(name.utf8))
      try database.save("name", ["bytes": .string(name)])
      try database.close()
    }
    try expect(directory.names(), equals: ["f"])
    let found = try folder.names()
    expect(found.count, equals: names.count)
    expect(Set(found.map { Array($0.utf8) }), equals: Set(names.map { Array($0.utf8) }))
    for name in found {
      let database = try folder.openExisting(name)
      try expect(database.document("name")?["bytes"].string.map { Array($0.utf8) }, equals: Array(name.utf8))
      try database.close()
      try folder.delete(name)
    }
    try expect(directory.names("f"), equals: [])
  }
}
