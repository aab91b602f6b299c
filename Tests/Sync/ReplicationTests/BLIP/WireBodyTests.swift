import Fleece
import Foundation
import TestSupport
import Testing

@testable import Replication
@testable import ReplicationBLIP

@Suite("Bodies on the wire") struct WireBodyTests {
  @Test(
    "top-level properties of the protocol go, and others stay",
    arguments: [
      (#"{"a":1}"#, #"{"a":1}"#),
      (#"{"_id":"x","_rev":"1-a","_deleted":true,"a":1}"#, #"{"a":1}"#),
      (#"{"\u005fid":"x","a":{"_b":2}}"#, #"{"a":{"_b":2}}"#),
      (#"{"\u005F_":1}"#, #"{}"#),
      (#"{ "_x" : {"deep":[1,2]} , "y":"_x" }"#, #"{"y":"_x"}"#),
      (#"{"a":"\"_b\":1"}"#, #"{"a":"\"_b\":1"}"#),
      (#"{"":1,"_":2}"#, #"{"":1}"#),
      (#"{"_attachments":{"old":{"stub":true}},"_id":"x"}"#, #"{"_attachments":{"old":{"stub":true}}}"#),
      (#"{"_attachments":{}}"#, #"{"_attachments":{}}"#),
    ])
  func stripping(_ received: String, _ stored: String) throws {
    let result = try WireBody.stored(Array(received.utf8))
    try expect(JSONValue(json: String(decoding: result, as: UTF8.self)), equals: JSONValue(json: stored))
  }

  @Test("what isn't an object is refused", arguments: [#""_""#, #"["_"]"#, #"{"_a":}"#])
  func refused(_ received: String) {
    #expect(throws: (any Error).self) { try WireBody.stored(Array(received.utf8)) }
  }

  private static let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
  private static let other = "sha1-ALLdIemlv8DYbxopft/x57RKL+s="
  private static func blob(_ digest: String = digest, _ length: Int = 3) -> String {
    #"{"@type":"blob","digest":"\#(digest)","length":\#(length),"content_type":"text/plain"}"#
  }
  private static func standIn(_ digest: String = digest, _ length: Int = 3) -> String {
    #"{"digest":"\#(digest)","length":\#(length),"content_type":"text/plain","stub":true,"revpos":1}"#
  }

  @Test(
    "stand-ins for blobs go, and edited ones change their blob",
    arguments: [
      // By number, as 2.0 sent them. Apps number their attachments too.
      (#"{"a":\#(blob()),"_attachments":{"blob_1":\#(standIn())}}"#, #"{"a":\#(blob())}"#),
      (
        #"{"a":\#(blob()),"_attachments":{"blob_0":\#(standIn(other)),"blob_1":\#(standIn())}}"#,
        #"{"a":\#(blob()),"_attachments":{"blob_0":\#(standIn(other))}}"#
      ),
      (
        #"{"a":\#(blob()),"_attachments":{"blob_1.png":\#(standIn())}}"#,
        #"{"a":\#(blob()),"_attachments":{"blob_1.png":\#(standIn())}}"#
      ),
      // By pointer.
      (#"{"a":\#(blob()),"_attachments":{"blob_/a":\#(standIn())}}"#, #"{"a":\#(blob())}"#),
      (
        #"{"a":[1,{"b":\#(blob())}],"_attachments":{"blob_/a/1/b":\#(standIn())}}"#,
        #"{"a":[1,{"b":\#(blob())}]}"#
      ),
      (
        #"{"a/b":{"c~d":\#(blob())},"_attachments":{"blob_/a~1b/c~0d":\#(standIn())}}"#,
        #"{"a/b":{"c~d":\#(blob())}}"#
      ),
      // ~01 is ~1, and not a slash.
      (#"{"~1":\#(blob()),"_attachments":{"blob_/~01":\#(standIn())}}"#, #"{"~1":\#(blob())}"#),
      (#"{"":\#(blob()),"_attachments":{"blob_/":\#(standIn())}}"#, #"{"":\#(blob())}"#),
      // A combining mark, which Swift takes for one character with the slash or the tilde before it.
      (#"{"\u0338b":\#(blob()),"_attachments":{"blob_/\u0338b":\#(standIn())}}"#, #"{"\u0338b":\#(blob())}"#),
      (
        #"{"a/\u0338~\u0301":\#(blob()),"_attachments":{"blob_/a~1\u0338~0\u0301":\#(standIn())}}"#,
        #"{"a/\u0338~\u0301":\#(blob())}"#
      ),
      // An index has one spelling, and so has an escaped character.
      (
        #"{"a":[1,\#(blob())],"_attachments":{"blob_/a/01":\#(standIn()),"blob_/a/+1":\#(standIn())}}"#,
        #"{"a":[1,\#(blob())],"_attachments":{"blob_/a/01":\#(standIn()),"blob_/a/+1":\#(standIn())}}"#
      ),
      (
        #"{"a~2":\#(blob()),"_attachments":{"blob_/a~2":\#(standIn()),"blob_/a~":\#(standIn())}}"#,
        #"{"a~2":\#(blob()),"_attachments":{"blob_/a~2":\#(standIn()),"blob_/a~":\#(standIn())}}"#
      ),
      // The server side has edited it.
      (
        #"{"a":\#(blob()),"_attachments":{"blob_/a":\#(standIn(other, 33))}}"#, #"{"a":\#(blob(other, 33))}"#
      ),
      // No blob is there.
      (
        #"{"a":1,"_attachments":{"blob_/a":\#(standIn()),"blob_/b/0":\#(standIn())}}"#,
        #"{"a":1,"_attachments":{"blob_/a":\#(standIn()),"blob_/b/0":\#(standIn())}}"#
      ),
      // Others stay.
      (
        #"{"a":\#(blob()),"_attachments":{"blob_/a":\#(standIn()),"photo":\#(standIn()),"blob_x":{}}}"#,
        #"{"a":\#(blob()),"_attachments":{"photo":\#(standIn()),"blob_x":{}}}"#
      ),
    ])
  func standIns(_ received: String, _ stored: String) throws {
    let result = try WireBody.stored(Array(received.utf8))
    try expect(JSONValue(json: String(decoding: result, as: UTF8.self)), equals: JSONValue(json: stored))
  }

  @Test("a peer without blobs gets stand-ins, also of equal blobs, and sends them back without effect")
  func adding() throws {
    let body = try JSONValue(
      json:
        #"{"a/b":\#(Self.blob()),"/\u0338":\#(Self.blob()),"l":[\#(Self.blob()),{"c~d":\#(Self.blob(Self.other, 33))}],"_attachments":{"photo":{"stub":true}}}"#
    )
    var sent = body
    WireBody.addStandIns(to: &sent, generation: 7)
    let attached = sent["_attachments"].object ?? [:]
    expect(
      Set(attached.keys), equals: ["photo", "blob_/a~1b", "blob_/~1\u{338}", "blob_/l/0", "blob_/l/1/c~0d"])
    expect(
      attached["blob_/l/1/c~0d"],
      equals: [
        "digest": .string(Self.other), "length": 33, "content_type": "text/plain", "stub": true, "revpos": 7,
      ])
    let back = try WireBody.stored(try sent.jsonText())
    try expect(back.withUnsafeBytes { try JSONValue(json: $0) }, equals: body)
    var none: JSONValue = ["a": 1]
    WireBody.addStandIns(to: &none, generation: 1)
    expect(none, equals: ["a": 1])
  }

  @Test("a body that doesn't change keeps its bytes") func sameBytes() throws {
    for text in [#"{ "a" : 1.50 }"#, #"{"a":"x\n"}"#, #"{}"#] {
      try expect(WireBody.stored(Array(text.utf8)), equals: Array(text.utf8))
    }
  }

  @Test("a body with very many stand-ins takes time in proportion to its size") func many() throws {
    let count = 100_000
    var members: JSONObject = [:]
    var standIns: JSONObject = [:]
    for number in 0..<count {
      members["k\(number)"] = ["list": [.null, try JSONValue(json: Self.blob())]]
      standIns["blob_/k\(number)/list/1"] = try JSONValue(json: Self.standIn())
    }
    let plain = JSONValue.object(members)
    members["_attachments"] = .object(standIns)
    var value = JSONValue.object(members)
    // It took a minute for a fifth of them when each was a copy of the body.
    try expect(WireBody.clean(&value))
    expect(value, equals: plain)
  }
}
