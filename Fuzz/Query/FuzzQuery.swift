// libFuzzer's target for the parser of queries: what it accepts prints to text that is parsed to the same tree.

import FuzzDriver
import Query

@main enum FuzzQuery: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    let text = String(decoding: input, as: UTF8.self)
    let statement: Statement
    do { statement = try QueryStatement(parsing: text) } catch {
      precondition(error.location != nil && !error.message.isEmpty, "an error without a place")
      return
    }
    let printed = statement.description
    do {
      let again = try QueryStatement(parsing: printed)
      precondition(again == statement, "another tree: \(printed)")
      precondition(again.description == printed, "another text: \(printed)")
    } catch {
      // Parentheses that the text did without may be one level too many.
      precondition(error.code == .tooDeep, "what was printed isn't accepted: \(error)")
    }
  }
}
