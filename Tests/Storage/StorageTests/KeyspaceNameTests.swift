import Storage
import TestTools

@Suite("Names of keyspaces") struct KeyspaceNameTests {
  @Test("are letters, digits, dots, hyphens and underscores of ASCII, and of limited length")
  func rule() {
    let allowed = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_".unicodeScalars)
    for code in 0...0x17F {
      guard let scalar = Unicode.Scalar(code) else { continue }
      expect(KeyspaceName.isValid("a\(scalar)") == allowed.contains(scalar), "U+\(String(code, radix: 16))")
    }
    let most = StorageLimits.maximumKeyspaceNameBytes
    for count in [0, 1, most, most + 1] {
      expect(
        KeyspaceName.isValid(String(repeating: "n", count: count)) == (1...most).contains(count), "\(count)")
    }
  }

  @Test("that aren't valid are refused with the rule and the file, and a long one is cut off")
  func refusal() throws {
    try KeyspaceName.check("docs", path: "/data")
    let error = try #require(throws: StorageError.self) {
      try KeyspaceName.check(String(repeating: "n", count: 10_000), path: "/data")
    }
    expect(error.code == .invalidArgument && error.path == "/data", "\(error)")
    expect(error.message.hasPrefix("a keyspace's name is 1 to 64 of the ASCII letters"), "\(error)")
    expect(error.message.utf8.count < 400)
  }
}
