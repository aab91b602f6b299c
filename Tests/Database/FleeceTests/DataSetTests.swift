// Real documents, compared with Foundation's JSON and with bytes of the original encoder.

import Fleece
import TestTools

@Suite(.enabled(if: dataFolder != nil, "TOUCHSTONE_DATA is not set: no real documents to read"))
struct DataSetTests {
  @Test func readsABodyOfTheOriginalEncoder() throws {
    let folder = try #require(dataFolder).appendingPathComponent("json")
    let fleece = [UInt8](try Data(contentsOf: folder.appendingPathComponent("1person.fleece")))
    let json = try String(contentsOf: folder.appendingPathComponent("1person.json"), encoding: .utf8)
    try check(fleece)
    try expect(decode(fleece), equals: JSONValue(json: json))
    try expect(text(of: fleece), equals: encode(json: json).json)
  }

  @Test func canonicalFormMeansTheSameToFoundation() throws {
    let folder = try #require(dataFolder).appendingPathComponent("json")
    let encoder = BodyEncoder()
    var texts: [Data] = []
    let names = [
      "1000people.json", "iTunesMusicLibrary_s.json", "nested.json", "mars.json", "paths.json",
      "names_100.json",
      "profiles_100.json", "sentences.json", "join.json", "rick_morty.json", "states_titlecase.json",
    ]
    for name in names {
      // Some files are one text, the others one a line.
      let file = try Data(contentsOf: folder.appendingPathComponent(name))
      let isOne = (try? JSONSerialization.jsonObject(with: file)) != nil
      texts += isOne ? [file] : file.split(separator: UInt8(ascii: "\n"))
    }
    expect(texts.count > 200)
    for text in texts {
      let keys = SharedKeysBuilder(.empty)
      try text.withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
      let encoded = result(of: encoder)
      try check(encoded.fleece, keys: keys.count)
      try expect(textAgain(encoded, keys), equals: encoded.json)
      let ours = try JSONSerialization.jsonObject(with: Data(encoded.json.utf8)) as? NSObject
      let theirs = try JSONSerialization.jsonObject(with: text) as? NSObject
      expect(ours, equals: theirs)
    }
  }

  private func textAgain(_ encoded: Encoded, _ keys: SharedKeysBuilder) throws -> String {
    try text(of: encoded.fleece, keys.snapshot())
  }
}
