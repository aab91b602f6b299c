import Foundation
import TestSupport
import Testing
import Touchstone

/// The typed accessors of rows.
@Suite("Typed values of rows") struct TypedRowTests {
  private static let body = #"""
    {"null":null,"true":true,"false":false,"int":7,"negative":-3,"big":18446744073709551615,"double":2.5,"whole":3.0,
     "text":"abc","empty":"","date":"2020-01-02T03:04:05.678Z","day":"2020-01-02","array":[1,"x",null,[2.5],{"a":true}],
     "object":{"b":2,"a":"x","é":null},"blob":{"@type":"blob","digest":"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=","length":5,
     "content_type":"text/plain"},"attachment":{"digest":"sha1-qvTGHdzF6KLavt4PO0gs2a6pQ00=","length":5,"revpos":1,
     "stub":true},"emptyArray":[],"emptyObject":{}}
    """#

  private func save(_ database: Database) throws {
    _ = try database.makeBlob(Array("hello".utf8))
    try database.save("d", DocumentBody(json: Self.body))
  }

  /// What a value gives to each accessor.
  private func answers<Value: TypedValue & KeyedProperties & IndexedProperties>(_ value: Value?) -> [String] {
    guard let value else { return ["nothing"] }
    return [
      "\(value.bool as Any)", "\(value.int as Any)", "\(value.double as Any)", "\(value.string as Any)",
      "\(value.date as Any)", "\(value.blob as Any)", "\(value.intValue)", "\(value.doubleValue)",
      "\(value.boolValue)", "\(value.array != nil)", "\(value.object != nil)", "\(value.keys.sorted())",
      value.string(forKey: "a") ?? "-", "\(value.int(forKey: "b"))", "\(value.double(forKey: "b"))",
      "\(value.boolean(forKey: "b"))", "\(value.contains(key: "é"))", "\(value.contains(key: "c"))",
      "\(value.int(at: 0))", value.string(at: 1) ?? "-", "\(value.double(at: 9))", "\(value.boolean(at: -1))",
      "\(value.date(at: 1) as Any)", "\(value.date(forKey: "a") as Any)", "\(value.array(at: 3) != nil)",
      "\(value.dictionary(at: 4) != nil)", "\(value.item(2) != nil)", "\(value.item(5) != nil)",
    ]
  }

  @Test("a value of a row answers as the property of the document does", arguments: someEngines)
  func sameAnswers(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try save(database)
      let document = try #require(try database.document("d"))
      let names = document.keys + ["unknown"]
      expect(names.count, equals: 19)
      let whole = try database.query("SELECT * FROM _").run()[0]
      let columns = try database.query(
        "SELECT " + names.map { "`\($0)`" }.joined(separator: ", ") + " FROM _"
      ).run()[0]
      for (index, name) in names.enumerated() {
        let wanted = answers(document.member(name))
        expect(answers(columns.member(name)), equals: wanted, "\(name)")
        expect(answers(columns.item(index)), equals: wanted, "\(name)")
        expect(answers(whole[0].member(name)), equals: wanted, "\(name)")
        expect(columns.string(forKey: name), equals: document.string(forKey: name))
        expect(columns.int(forKey: name), equals: document.int(forKey: name))
        expect(columns.double(at: index), equals: document.double(forKey: name))
        expect(columns.boolean(forKey: name), equals: document.boolean(forKey: name))
        expect(columns.date(forKey: name), equals: document.date(forKey: name))
        expect(columns.blob(forKey: name), equals: document.blob(forKey: name))
        expect(columns.blob(at: index), equals: document.blob(forKey: name))
        try expect(columns.array(forKey: name)?.values(), equals: document.array(forKey: name)?.values())
        try expect(
          columns.dictionary(forKey: name)?.value(), equals: document.dictionary(forKey: name)?.value())
      }
      expect(Set(columns.keys) == Set(document.keys) && !columns.contains(key: "unknown"))
      expect(columns["big"].uint == .max && columns["int"].uint == 7 && columns["negative"].uint == nil)
      expect(columns.blob(forKey: "blob")?.contentType, equals: "text/plain")
    }
  }

  @Test("arrays and objects of a row are collections") func collections() throws {
    try withDatabase(.sqlite) { database in
      try save(database)
      let row = try database.query("SELECT `array`, object, int FROM _").run()[0]
      let array = try #require(row.array(forKey: "array"))
      expect(array.count == 5 && array.map { $0.int } == [1, nil, nil, nil, nil])
      expect(array[1].string == "x" && !array[-1].exists && !array[5].exists && array.item(-1) == nil)
      expect(array.int(at: 0) == 1 && array.dictionary(at: 4)?.boolean(forKey: "a") == true)
      let object = try #require(row.dictionary(forKey: "object"))
      expect(object.count == 3 && object.map { $0.key } == ["a", "b", "é"] && object["b"].int == 2)
      expect(row.array(forKey: "int") == nil && row.dictionary(forKey: "array") == nil)
      expect(row.array(forKey: "object") == nil && row["object"].array == nil)
    }
  }

  @Test("binary data comes back as it was given") func data() throws {
    try withDatabase(.sqlite) { database in
      try database.save("d", [:])
      let row = try database.query("SELECT $data AS data, 'text' AS text FROM _").run([
        "data": Data([1, 0, 255])
      ])[0]
      expect(row["data"].data == [1, 0, 255] && row["text"].data == nil)
      try expect(row.decode([String: JSONValue].self)["data"], equals: .data([1, 0, 255]))
    }
  }
}
