// Real documents, compared with Foundation's JSON and with bytes of the original encoder.

import Fleece
import Foundation
import Testing

@Suite(.enabled(if: dataFolder != nil, "TOUCHSTONE_DATA is not set: no real documents to read"))
struct DataSetTests {
  @Test func readsABodyOfTheOriginalEncoder() throws {
    let folder = try #require(dataFolder).appendingPathComponent("json")
    let fleece = [UInt8](try Data(contentsOf: folder.appendingPathComponent("1person.fleece")))
    let json = try String(contentsOf: folder.appendingPathComponent("1person.json"), encoding: .utf8)
    try check(fleece)
    #expect(try decode(fleece) == JSONValue(json: json))
    #expect(try text(of: fleece) == encode(json: json).json)
  }

  @Test func canonicalFormMeansTheSameToFoundation() throws {
    let folder = try #require(dataFolder).appendingPathComponent("json")
    let encoder = BodyEncoder()
    var texts: [Data] = []
    for name in ["1000people.json", "iTunesMusicLibrary_s.json", "nested.json", "mars.json", "paths.json"] {
      texts.append(try Data(contentsOf: folder.appendingPathComponent(name)))
    }
    for name in ["names_100.json", "profiles_100.json", "sentences.json", "join.json", "rick_morty.json"] {
      texts += try Data(contentsOf: folder.appendingPathComponent(name)).split(separator: UInt8(ascii: "\n"))
    }
    for text in texts {
      let keys = SharedKeysBuilder(.empty)
      try text.withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
      let encoded = result(of: encoder)
      try check(encoded.fleece, keys: keys.count)
      #expect(try textAgain(encoded, keys) == encoded.json)
      let ours = try JSONSerialization.jsonObject(with: Data(encoded.json.utf8)) as? NSObject
      let theirs = try JSONSerialization.jsonObject(with: text) as? NSObject
      #expect(ours == theirs)
    }
  }

  private func textAgain(_ encoded: Encoded, _ keys: SharedKeysBuilder) throws -> String {
    try text(of: encoded.fleece, keys.snapshot())
  }
}
