import TestSupport

@Suite("Folders of databases on a server", .enabled(if: hasServer)) struct ServerFolderTests {
  /// The location of a database of the server with no databases of ours, and its folder.
  private func makeFolder() throws -> (location: String, folder: DatabaseFolder) {
    let name = "folder_" + UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased()
    try server().sql("CREATE DATABASE \(name)")
    let location = "postgres:///\(name)?host=\(try server().directory)&user=touchstone"
    return (location, try DatabaseFolder(location))
  }

  @Test("opens, lists, copies and removes databases by their names")
  func names() throws {
    let (location, folder) = try makeFolder()
    expect(folder.path, equals: location)
    try expect(folder.names(), equals: [])
    for name in ["b", "a/b", "ä c"] {
      let database = try folder.open(name)
      expect(database.name, equals: name)
      try database.save("doc", ["name": .string(name)])
    }
    try folder.close()
    try expect(folder.names(), equals: ["a/b", "b", "ä c"])
    expect(folder.exists("b") && !folder.exists("c"))
    try expect(folder.path(of: "a/b"), equals: location + "#a%2Fb")
    try expect(databaseCode { try folder.openExisting("c") }, equals: .notFound)
    try expect(folder.install("copy", from: location + "#b"))
    try expect(!folder.install("copy", from: location + "#b"))
    let copy = try folder.openExisting("copy")
    try expect(copy.document("doc")?["name"].string, equals: "b")
    try expect(databaseCode { try folder.delete("copy") }, equals: .inUse)
    try folder.close()
    try folder.delete("copy")
    try expect(folder.names(), equals: ["a/b", "b", "ä c"])
  }

  @Test("refuses what is about files, and names that can't be schemas")
  func refusals() throws {
    let (location, folder) = try makeFolder()
    try folder.open("a").close()
    try expect(databaseCode { try folder.move("a", to: "b") }, equals: .invalidLocation)
    try expect(databaseCode { try folder.replace("a", with: location + "#a") }, equals: .invalidLocation)
    for name in ["", ".a", "a\u{1}", "x.touchstone"] {
      try expect(databaseCode { try folder.open(name) }, equals: .invalidName, "\(name)")
    }
    for name in ["pg_a", String(repeating: "ä", count: 32)] {
      try expect(databaseCode { try folder.open(name) }, equals: .invalidLocation, "\(name)")
    }
  }
}
