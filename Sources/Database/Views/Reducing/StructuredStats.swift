import Bytes
import Fleece

//   partial   := 00 | 01 node | 02 message | 03               no rows; values of different shapes
//   node      := 01  count  sum  squares  least  greatest     of numbers
//              | 02  items:varint  node*                      of arrays of equal length
//   count, sum, squares := doubles:varint  sum

/// CouchDB's `_stats`: of numbers, of arrays position by position, and of objects with the members of a result.
struct StructuredStatsReducer: Reducer {
  var identity: String { "_stats 1" }
  var canRereduce: Bool { true }
  var refusesValues: Bool { true }
  func makeReduction() -> any Reduction { StructuredStatsReduction() }
}

private struct StatsCell {
  var count = NumberSum()
  var sum = NumberSum()
  var squares = NumberSum()
  var least: ReducedNumber
  var greatest: ReducedNumber

  init(_ number: ReducedNumber) {
    count.add(.integer(1))
    sum.add(number)
    squares.addSquare(of: number)
    least = number
    greatest = number
  }

  init(
    count: ReducedNumber, sum: ReducedNumber, squares: ReducedNumber, least: ReducedNumber,
    greatest: ReducedNumber
  ) {
    self.count.add(count)
    self.sum.add(sum)
    self.squares.add(squares)
    self.least = least
    self.greatest = greatest
  }

  init(_ reader: inout ByteReader) throws {
    try count.merge(&reader)
    try sum.merge(&reader)
    try squares.merge(&reader)
    least = try ReducedNumber(&reader)
    greatest = try ReducedNumber(&reader)
  }

  func write(to partial: inout ByteBuffer) {
    count.write(to: &partial)
    sum.write(to: &partial)
    squares.write(to: &partial)
    least.write(to: &partial)
    greatest.write(to: &partial)
  }

  mutating func add(_ other: StatsCell) {
    count.add(other.count)
    sum.add(other.sum)
    squares.add(other.squares)
    least = least.least(other.least)
    greatest = greatest.greatest(other.greatest)
  }

  /// Returns false if the number is an extreme.
  mutating func remove(_ number: ReducedNumber) -> Bool {
    guard least.compare(number) < 0, greatest.compare(number) > 0 else { return false }
    count.remove(.integer(1))
    sum.remove(number)
    squares.removeSquare(of: number)
    return true
  }

  func write(to json: inout [UInt8]) throws {
    json.append(contentsOf: "{\"sum\":".utf8)
    try sum.write(to: &json)
    json.append(contentsOf: ",\"count\":".utf8)
    try count.write(to: &json)
    json.append(contentsOf: ",\"min\":".utf8)
    least.write(to: &json)
    json.append(contentsOf: ",\"max\":".utf8)
    greatest.write(to: &json)
    json.append(contentsOf: ",\"sumsqr\":".utf8)
    try squares.write(to: &json)
    json.append(UInt8(ascii: "}"))
  }
}

private indirect enum StatsNode {
  case cell(StatsCell)
  case items([StatsNode])

  init(_ scanner: inout JSONScanner, depth: Int = 0) throws {
    let text = scanner
    switch try scanner.next() {
    case .number: self = .cell(StatsCell(try scanner.number()))
    case .array where depth < JSONScanner.maximumDepth:
      var items: [StatsNode] = []
      try scanner.array { items.append(try StatsNode(&$0, depth: depth + 1)) }
      self = .items(items)
    case .object:
      var numbers: [[UInt8]: ReducedNumber] = [:]
      var unfit: String?
      try scanner.members { name, scanner in
        guard try scanner.next() == .number else {
          let value = String(decoding: try scanner.skip(), as: UTF8.self)
          let name = String(decoding: name, as: UTF8.self)
          if StatsNode.names.contains(name) {
            unfit = unfit ?? "non-numeric _stats input received for \(name): \(value)"
          }
          return
        }
        numbers[name] = try scanner.number()
      }
      if let unfit { throw StatsFault(message: unfit) }
      func number(_ name: String) throws -> ReducedNumber {
        if let number = numbers[Array(name.utf8)] { return number }
        throw StatsFault(message: "user _stats input missing required field \(name)")
      }
      self = .cell(
        StatsCell(
          count: try number("count"), sum: try number("sum"), squares: try number("sumsqr"),
          least: try number("min"), greatest: try number("max")))
    default:
      var text = text
      let value = String(decoding: try text.skip().prefix(ReductionFault.excerptBytes), as: UTF8.self)
      throw StatsFault(
        message:
          "The _stats function requires that map values be numbers or arrays of numbers, not '\(value)'")
    }
  }

  private static let names = ["count", "sum", "sumsqr", "min", "max"]

  init(_ reader: inout ByteReader, depth: Int = 0) throws {
    switch reader.byte() {
    case 1: self = .cell(try StatsCell(&reader))
    case 2:
      guard depth < JSONScanner.maximumDepth, let count = reader.varint(),
        count <= UInt64(reader.rest.byteCount)
      else { throw ViewReduceError.damaged }
      var items: [StatsNode] = []
      for _ in 0..<Int(count) { items.append(try StatsNode(&reader, depth: depth + 1)) }
      self = .items(items)
    default: throw ViewReduceError.damaged
    }
  }

  func write(to partial: inout ByteBuffer) {
    switch self {
    case .cell(let cell):
      partial.append(1)
      cell.write(to: &partial)
    case .items(let items):
      partial.append(2)
      partial.append(varint: UInt64(items.count))
      for item in items { item.write(to: &partial) }
    }
  }

  /// Returns false if the shapes differ.
  mutating func add(_ other: StatsNode) -> Bool {
    switch (self, other) {
    case (.cell(var cell), .cell(let more)):
      cell.add(more)
      self = .cell(cell)
      return true
    case (.items(var items), .items(let more)):
      guard items.count == more.count else { return false }
      for index in items.indices { if !items[index].add(more[index]) { return false } }
      self = .items(items)
      return true
    default: return false
    }
  }

  func write(to json: inout [UInt8]) throws {
    switch self {
    case .cell(let cell): try cell.write(to: &json)
    case .items(let items):
      json.append(UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { json.append(UInt8(ascii: ",")) }
        try item.write(to: &json)
      }
      json.append(UInt8(ascii: "]"))
    }
  }
}

private struct StatsFault: Error {
  let message: String
}

private final class StructuredStatsReduction: Reduction {
  private enum State {
    case empty
    case node(StatsNode)
    case fault(String)
    /// A fault of a value comes before that of different shapes, wherever the blocks end.
    case differentShapes
  }

  private var state = State.empty

  func reset() { state = .empty }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    if case .fault = state { return }
    try row.withValue(expanding: expanding) { value in
      var scanner = JSONScanner(value)
      do { add(try StatsNode(&scanner)) } catch let fault as StatsFault { state = .fault(fault.message) }
    }
  }

  private func add(_ node: StatsNode) {
    switch state {
    case .empty: state = .node(node)
    case .node(var sum):
      state = .empty
      state = sum.add(node) ? .node(sum) : .differentShapes
    case .fault, .differentShapes: break
    }
  }

  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    guard case .node(.cell(var cell)) = state, row.kind == .json,
      let number = row.valueJSON.withUnsafeBytes({ ReducedNumber($0) })
    else { return false }
    cell.add(StatsCell(number))
    state = .node(.cell(cell))
    return true
  }

  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    guard case .node(.cell(var cell)) = state, row.kind == .json,
      let number = row.valueJSON.withUnsafeBytes({ ReducedNumber($0) }), cell.remove(number)
    else { return false }
    state = .node(.cell(cell))
    return true
  }

  func merge(_ partial: RawSpan) throws {
    if case .fault = state { return }
    var reader = ByteReader(partial)
    switch reader.byte() {
    case 0: break
    case 1:
      add(try StatsNode(&reader))
      guard reader.rest.byteCount == 0 else { throw ViewReduceError.damaged }
    case 2: state = .fault(String(copying: reader.rest))
    case 3: state = .differentShapes
    default: throw ViewReduceError.damaged
    }
  }

  func write(to partial: inout ByteBuffer) {
    switch state {
    case .empty: partial.append(0)
    case .node(let node):
      partial.append(1)
      node.write(to: &partial)
    case .fault(var message):
      partial.append(2)
      message.withUTF8 { partial.append(UnsafeRawBufferPointer($0)) }
    case .differentShapes: partial.append(3)
    }
  }

  func result(to json: inout [UInt8]) throws {
    switch state {
    case .empty: json.append(contentsOf: #"{"sum":0,"count":0,"min":0,"max":0,"sumsqr":0}"#.utf8)
    case .node(let node): try node.write(to: &json)
    case .fault(let message): throw ViewReduceError(.invalidValue, message)
    case .differentShapes:
      throw ViewReduceError(
        .invalidValue, "The _stats function requires that arrays of map values have equal lengths")
    }
  }
}
