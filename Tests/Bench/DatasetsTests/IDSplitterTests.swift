import Expectations
import Foundation
import Testing

@testable import Datasets

/// The ID is taken out of the outermost object wherever it stands, and nothing else changes.
struct IDSplitterTests {
  private func split(_ line: String, property: String = "_id") throws -> (id: String?, json: String) {
    var splitter = IDSplitter(idProperty: property)
    var bytes = Array(line.utf8)
    return try bytes.withUnsafeMutableBytes { buffer in
      let record = try splitter.split(buffer)
      return (record.idString, String(decoding: record.json, as: UTF8.self))
    }
  }

  @Test(arguments: [
    (#"{"_id":"x","a":1}"#, "x", #"{"a":1}"#),
    (#"{"_id":"x"}"#, "x", "{}"),
    (#"{ "_id" : "x" , "a" : 1 }"#, "x", #"{ "a" : 1 }"#),
    (#"{ "_id" : "x" }"#, "x", "{}"),
    (#"{"a":1,"_id":"x"}"#, "x", #"{"a":1}"#),
    (#"{"a":1,"_id":"x","b":2}"#, "x", #"{"a":1,"b":2}"#),
    (
      #"{"a":{"_id":"no"},"b":["_id"],"_id":"yes","c":"}"}"#, "yes",
      #"{"a":{"_id":"no"},"b":["_id"],"c":"}"}"#
    ),
    (#"{"a":"\"_id\":","_id":"x"}"#, "x", #"{"a":"\"_id\":"}"#),
    (#"{"a":"\\","_id":"x"}"#, "x", #"{"a":"\\"}"#),
    (#"{"_id":"a\"b\\c\/\n\u00e9\ud83d\ude00","z":0}"#, "a\"b\\c/\né😀", #"{"z":0}"#),
    (#"{"z":0,"_id":"a\tb","y":1}"#, "a\tb", #"{"z":0,"y":1}"#),
    (#"{"_id":"","a":1}"#, "", #"{"a":1}"#),
    (#"{"_idx":1,"_id":"é","x_id":2}"#, "é", #"{"_idx":1,"x_id":2}"#),
  ])
  func takesTheIDOut(_ line: String, _ id: String, _ json: String) throws {
    let parts = try split(line)
    expect(parts.id, equals: id)
    let found = try JSONSerialization.jsonObject(with: Data(parts.json.utf8)) as? NSDictionary
    let expected = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? NSDictionary
    expect(found, equals: expected, "\(parts.json)")
  }

  @Test(arguments: [
    #"{}"#, #"{"a":1}"#, #"{"a":"_id"}"#, #"{"a":{"_id":"x"}}"#, #"{"a":["_id","_id"]}"#, #" { } "#,
  ])
  func lineWithoutIDStaysAsItIs(_ line: String) throws {
    let parts = try split(line)
    expect(parts.id == nil)
    expect(parts.json, equals: line)
  }

  @Test func anotherPropertyCanBeTheID() throws {
    let parts = try split(#"{"_id":"x","key":"k"}"#, property: "key")
    expect(parts.id, equals: "k")
    expect(parts.json, equals: #"{"_id":"x"}"#)
  }

  @Test(arguments: [
    "", "[]", "17", "null", #"{"_id":7}"#, #"{"_id":null,"a":1}"#, #"{"_id":"x"#, #"{"_id":"x""#, #"{"_id""#,
    #"{"_id":"x" "a":1}"#, #"{"a":[1,"_id":"x"}"#, #"{"_id":"\q"}"#, #"{"_id":"\ud800x"}"#,
  ])
  func brokenLinesAreRefused(_ line: String) {
    #expect(throws: IDSplitter.Fault.self) { try split(line) }
  }

  @Test func noInputReadsOutsideTheLine() throws {
    // Every prefix of valid lines, and every byte of one replaced by what matters to the scanner.
    let line = Array(#"{"a":{"b":[1,"\"x"]},"_id":"i\u0041d","c":"_id"}"#.utf8)
    for length in 0...line.count {
      for replaced in 0..<max(1, length) {
        for byte in Array(#"{}[]",:\u _"#.utf8) {
          var bytes = Array(line[..<length])
          if length > 0 { bytes[replaced] = byte }
          var splitter = IDSplitter(idProperty: "_id")
          try bytes.withUnsafeMutableBytes { buffer in
            guard let record = try? splitter.split(buffer) else { return }
            let start =
              try #require(record.json.baseAddress) - UnsafeRawPointer(try #require(buffer.baseAddress))
            expect(start >= 0 && start + record.json.count <= buffer.count)
          }
        }
      }
    }
  }

  @Test func badLineIsNamedByItsNumber() throws {
    try withFile(Array("{\"_id\":\"a\"}\n\n[1]\n".utf8)) { path in
      let source = try JSONLinesSource(path: path)
      try expect(source.next()?.idString, equals: "a")
      let error = #expect(throws: DatasetError.self) { try source.next() }
      expect(error?.code, equals: .badLine)
      expect(error?.line, equals: 3)
    }
  }
}
