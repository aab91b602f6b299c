// Prints loops, subscripts, computed objects and windows.

import Storage

extension Printer {
  mutating func write(_ iteration: Iteration) {
    put(iteration.kind.rawValue + " ")
    if let name = iteration.name {
      // COLLATE UNICODE takes a colon and a locale.
      put(afterWord: name, atLeast: .or)
      put(": ")
    }
    if let result = iteration.result {
      if iteration.name == nil { put(afterWord: result) } else { put(result) }
      put(" FOR ")
    }
    put(iteration.bindings) { printer, binding in
      if let position = binding.position {
        printer.put(name: position)
        printer.put(": ")
      }
      printer.put(name: binding.variable)
      printer.put(binding.isDeep ? " WITHIN " : " IN ")
      printer.put(binding.collection)
    }
    if let condition = iteration.condition {
      put(iteration.kind.isTest ? " SATISFIES " : " WHEN ")
      put(condition)
    }
    put(" END")
  }

  /// Prints an operand after a word that is also a name. In parentheses if it begins with what could be an operator.
  mutating func put(afterWord operand: QueryExpression, atLeast minimum: BindingPower = .collate) {
    let text = rendered(operand, atLeast: minimum)
    let looksLikeOperator = text.hasPrefix("*") || text.hasPrefix("- ") || text.hasPrefix("+ ")
    put(looksLikeOperator ? "(" + text + ")" : text)
  }

  mutating func write(_ inside: Subscript) {
    switch inside {
    case .element(let index):
      put("[")
      put(rendered(index, asSubscript: true))
    case .field(let name):
      put(".[")
      put(rendered(name, asSubscript: false))
    case .slice(let start, let end):
      put("[")
      if let start { put(start, atLeast: .or) }
      put(":")
      if let end { put(end) }
    }
    put("]")
  }

  /// An expression in brackets. A literal alone would be a step of a path, so it has parentheses.
  private func rendered(_ expression: QueryExpression, asSubscript isIndex: Bool) -> String {
    let text = rendered(expression, atLeast: .collate)
    switch expression {
    case .literal(.int) where isIndex, .literal(.uint) where isIndex, .literal(.string), .star(nil):
      return "(" + text + ")"
    default: return text
    }
  }

  mutating func write(_ members: [ComputedMember]) {
    put("{")
    put(members) { printer, member in
      // A literal name, if all are literal, would make an object with fixed names.
      printer.put("(")
      printer.put(member.name)
      printer.put("): ")
      printer.put(member.value)
    }
    put("}")
  }

  // MARK: Windows

  mutating func put(_ ordering: Ordering) {
    put(ordering.expression)
    if ordering.isDescending { put(" DESC") }
    if let nulls = ordering.nulls { put(" NULLS " + nulls.rawValue) }
  }

  mutating func write(filter: QueryExpression?, _ window: WindowCall?) {
    if let filter {
      put(" FILTER (WHERE ")
      put(filter)
      put(")")
    }
    guard let window else { return }
    if window.countsFromLast { put(" FROM LAST") }
    if window.ignoresNulls { put(" IGNORE NULLS") }
    put(" OVER (")
    write(window.definition)
    put(")")
  }

  mutating func put(windows: [NamedWindow]) {
    guard !windows.isEmpty else { return }
    put(" WINDOW ")
    put(windows) { printer, window in
      printer.put(name: window.name)
      printer.put(" AS (")
      printer.write(window.definition)
      printer.put(")")
    }
  }

  private mutating func write(_ window: WindowDefinition) {
    var parts: [String] = []
    func part(_ body: (inout Printer) -> Void) {
      var printer = Printer()
      body(&printer)
      parts.append(printer.text)
    }
    if let base = window.base {
      // Words with a meaning in a window.
      let isWord = ["PARTITION", "ROWS", "RANGE", "GROUPS"].contains(base.string.uppercased())
      part { isWord ? $0.put("`\(base)`") : $0.put(name: base) }
    }
    if !window.partitionBy.isEmpty {
      part {
        $0.put("PARTITION BY ")
        $0.put(window.partitionBy) { $0.put($1) }
      }
    }
    if !window.orderBy.isEmpty {
      part {
        $0.put("ORDER BY ")
        $0.put(window.orderBy) { $0.put($1) }
      }
    }
    if let frame = window.frame { part { $0.write(frame) } }
    put(parts.joined(separator: " "))
  }

  private mutating func write(_ frame: WindowFrame) {
    put(frame.unit.rawValue + " BETWEEN ")
    write(frame.start)
    put(" AND ")
    write(frame.end)
    if frame.exclusion != .noOthers { put(" EXCLUDE " + frame.exclusion.rawValue) }
  }

  private mutating func write(_ bound: WindowFrame.Bound) {
    switch bound {
    case .unboundedPreceding: put("UNBOUNDED PRECEDING")
    case .unboundedFollowing: put("UNBOUNDED FOLLOWING")
    case .currentRow: put("CURRENT ROW")
    case .preceding(let offset):
      // Above AND, which separates the bounds.
      put(offset, atLeast: .relation)
      put(" PRECEDING")
    case .following(let offset):
      put(offset, atLeast: .relation)
      put(" FOLLOWING")
    }
  }
}
