import TestTools
import Testing

@testable import Fleece

@Suite("The measure of a JSON text") struct MeasureTests {
  private func measure(_ text: String) -> [Int] {
    let measure = Array(text.utf8).withUnsafeBytes { JSONMeasure($0) }
    return [measure.depth, measure.values]
  }

  @Test("Levels and values are counted outside of strings")
  func counts() {
    expect(measure("1"), equals: [0, 1])
    expect(measure(""), equals: [0, 1])
    expect(measure(#"{"a":1}"#), equals: [1, 2])
    expect(measure(#"[1,[2,[3]],{"a":{"b":[]}}]"#), equals: [4, 10])
    expect(measure(#"["[[[,,,","\"[[",{"]\\":"{,"}]"#), equals: [2, 5])
    expect(measure(#"[[[]],[]]"#), equals: [3, 6])
  }

  @Test("Texts that end early or have too many brackets are measured to their end")
  func broken() {
    expect(measure(#"["abc"#), equals: [1, 2])
    expect(measure(#"["abc\"#), equals: [1, 2])
    expect(measure("]]]]["), equals: [0, 2])
    expect(measure("[[[["), equals: [4, 5])
  }

  @Test("No text has more values than it says")
  func upperBound() throws {
    for text in [#"{"a":[1,2,3],"b":{}}"#, "[[],[],[1]]", #"[{"x":{"y":[null,true,"s,[{"]}}]"#] {
      let value = try JSONValue(json: text)
      expect(Self.count(value) <= measure(text)[1])
    }
  }

  private static func count(_ value: JSONValue) -> Int {
    switch value {
    case .array(let items): 1 + items.reduce(0) { $0 + count($1) }
    case .object(let members): 1 + members.keys.reduce(0) { $0 + count(members[$1] ?? .null) }
    default: 1
    }
  }
}
