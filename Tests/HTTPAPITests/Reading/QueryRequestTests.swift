import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("N1QL over HTTP") struct QueryRequestTests {
  private func client(_ engine: EngineName) throws -> ReadingClient {
    let reading = try ReadingClient(engine)
    try reading.database.save("a", ["n": 1, "name": "Ä\""])
    try reading.database.save("b", ["n": 2])
    return reading
  }

  @Test("rows with their columns", arguments: allEngines)
  func rows(_ engine: EngineName) throws {
    let reading = try client(engine)
    let answer = try reading.post(
      "_query",
      "{\"query\":\"SELECT name, n AS number FROM _ WHERE n >= $least ORDER BY n\",\"parameters\":{\"least\":1}}"
    )
    #expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
    #expect(
      answer.text
        == "{\"columns\":[\"name\",\"number\"],\"rows\":[\r\n{\"name\":\"Ä\\\"\",\"number\":1},\r\n{\"number\":2}\r\n]}\n"
    )
    let none = try reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n > 5\",\"parameters\":{}}")
    #expect(none.text == "{\"columns\":[\"n\"],\"rows\":[\r\n\r\n]}\n")
    #expect(
      try reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n = $n\",\"parameters\":{\"$n\":2}}")
        .json()["rows"]
        == [["n": 2]])
    let plan = try reading.post("_query", "{\"query\":\"SELECT n FROM _\",\"explain\":true}").json()
    #expect(plan["plan"]?.string?.isEmpty == false)
  }

  @Test("a wrong query tells where") func errors() throws {
    let reading = try client(.lmdb)
    let answer = try reading.post("_query", "{\"query\":\"SELECT n\\nFROM _ WHRE n = 1\"}")
    #expect(answer.status == 400)
    let error = try answer.json()
    #expect(error["error"] == "query_error" && error["code"] == "syntax")
    #expect(error["line"] == 2 && error["column"]?.int ?? 0 > 1 && error["offset"]?.int ?? 0 > 8)
    #expect(error["reason"]?.string?.isEmpty == false)
    let unset = try reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n = $least\"}")
    #expect(unset.status == 400)
    #expect(try unset.json()["code"] == "unsetParameter")
    let limited = try reading.post("_query", "{\"query\":\"SELECT n FROM _\",\"row_limit\":1}")
    #expect(limited.status == 413)
    #expect(try limited.json()["code"] == "rowLimit")
    // A million pairs take longer than a millisecond.
    try reading.database.inBatch {
      for number in 0..<1_000 { try reading.database.save("d\(number)", ["n": 3]) }
    }
    let slow = try reading.post(
      "_query", #"{"query":"SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON a.n + b.n > 0","timeout":1}"#)
    #expect(slow.status == 408)
    #expect(try slow.json()["error"] == "query_error" && slow.json()["code"] == "timedOut")
    for body in ["{}", "[]", "{\"query\":5}", "{\"query\":\"SELECT n FROM _\",\"parameters\":5}", "{", ""] {
      #expect(try reading.post("_query", body).status == 400, "\(body)")
    }
    #expect(try reading.get("_query").status == 405)
  }

  @Test("a slow client is waited for only behind what fits into memory") func slow() throws {
    let reading = try client(.lmdb)
    let filling = String(repeating: "x", count: 20_000)
    try reading.database.inBatch {
      for number in 0..<200 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    }
    let response = try reading.client.stall("POST", "/db/_query", body: "{\"query\":\"SELECT text FROM _\"}")
    response.waitUntilStalled()
    // Four megabytes of rows wait; the snapshot is gone.
    eventually { (try? reading.database.close()) != nil }
    response.release()
    #expect(response.body().count > 4_000_000)
    #expect(!response.hasFailed)
  }
}
