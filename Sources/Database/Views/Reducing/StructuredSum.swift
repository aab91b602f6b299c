import Bytes
import Fleece

//   partial   := 00 input:varint node | 01 JSON of the first value that can't be added
//              | 02 why the sum is too wide
//   input     := the bytes of the values' JSON
//   node      := numbers:varint  arrays:varint  objects:varint
//                items:varint  (count:varint  doubles:varint  sum)*          in the order of positions
//                members:varint  (length:varint  name  node)*                in the byte order of names

/// CouchDB's `_sum`: of numbers, of arrays of numbers position by position, and of objects member by member.
///
/// A number counts as an array of one number where there are arrays. The result for a value that can't be added
/// is CouchDB's object with `builtin_reduce_error`.
///
/// A sum that isn't much shorter than the values, because each has other members or positions, is such an error, too, as in
/// CouchDB: partial sums as long as all rows would be stored otherwise.
struct StructuredSumReducer: Reducer {
  var identity: String { "_sum 2" }
  var canRereduce: Bool { true }
  func makeReduction() -> any Reduction { StructuredSumReduction() }
}

/// The sum at one place of the values' structure. Values of all kinds are added; whether they fit together shows
/// in the result.
private struct SumNode {
  struct Item {
    var count: UInt64 = 0
    var sum = NumberSum()
  }

  var numbers: UInt64 = 0
  var arrays: UInt64 = 0
  var objects: UInt64 = 0
  var items: [Item] = []
  var members: [ByteString: SumNode] = [:]

  var isEmpty: Bool { numbers == 0 && arrays == 0 && objects == 0 }

  // MARK: Values

  /// Adds a value, or takes it out. Returns the text of a part that can't be added, in whose case the node is
  /// left half changed.
  mutating func apply(
    _ scanner: inout JSONScanner, removing: Bool, width: inout Int, depth: Int = 0
  ) throws -> UnsafeRawBufferPointer? {
    let step: UInt64 = removing ? .max : 1
    switch try scanner.next() {
    case .number:
      numbers &+= step
      apply(try scanner.number(), at: 0, step, width: &width)
      trim(width: &width)
      return nil
    case .array:
      var copy = scanner
      let text = try copy.skip()
      arrays &+= step
      var position = 0
      var fits = true
      try scanner.array { scanner in
        guard try scanner.next() == .number else {
          fits = false
          _ = try scanner.skip()
          return
        }
        apply(try scanner.number(), at: position, step, width: &width)
        position += 1
      }
      trim(width: &width)
      return fits ? nil : text
    case .object:
      guard depth < JSONScanner.maximumDepth else { return try scanner.skip() }
      objects &+= step
      var unfit: UnsafeRawBufferPointer?
      try scanner.members { name, scanner in
        let name = ByteString(name)
        let before = members.count
        let found = try members[name, default: SumNode()].apply(
          &scanner, removing: removing, width: &width, depth: depth + 1)
        if removing, members[name]?.isEmpty == true { members[name] = nil }
        width += (members.count - before) * (name.bytes.count + SumNode.widthOfMember)
        unfit = unfit ?? found
      }
      return unfit
    default: return try scanner.skip()
    }
  }

  /// What a member takes in JSON besides its name, and a number, at least.
  private static let widthOfMember = 4
  private static let widthOfItem = 2

  private mutating func apply(
    _ number: ReducedNumber, at position: Int, _ step: UInt64, width: inout Int
  ) {
    while items.count <= position {
      items.append(Item())
      width += SumNode.widthOfItem
    }
    items[position].count &+= step
    if step == 1 { items[position].sum.add(number) } else { items[position].sum.remove(number) }
  }

  private mutating func trim(width: inout Int) {
    while let last = items.last, last.count == 0 {
      items.removeLast()
      width -= SumNode.widthOfItem
    }
  }

  // MARK: Partials

  func write(to partial: inout ByteBuffer) {
    partial.append(varint: numbers)
    partial.append(varint: arrays)
    partial.append(varint: objects)
    partial.append(varint: UInt64(items.count))
    for item in items {
      partial.append(varint: item.count)
      item.sum.write(to: &partial)
    }
    partial.append(varint: UInt64(members.count))
    for (name, node) in members.sorted(by: { $0.key < $1.key }) {
      partial.append(varint: UInt64(name.bytes.count))
      name.bytes.withUnsafeBytes { partial.append($0) }
      node.write(to: &partial)
    }
  }

  mutating func merge(_ reader: inout ByteReader, width: inout Int, depth: Int = 0) throws {
    guard depth <= JSONScanner.maximumDepth, let numbers = reader.varint(), let arrays = reader.varint(),
      let objects = reader.varint(), let items = reader.varint(), items <= UInt64(reader.rest.byteCount)
    else { throw ViewReduceError.damaged }
    self.numbers &+= numbers
    self.arrays &+= arrays
    self.objects &+= objects
    for index in 0..<Int(items) {
      guard let count = reader.varint() else { throw ViewReduceError.damaged }
      if index == self.items.count {
        self.items.append(Item())
        width += SumNode.widthOfItem
      }
      self.items[index].count &+= count
      try self.items[index].sum.merge(&reader)
    }
    guard let members = reader.varint(), members <= UInt64(reader.rest.byteCount) else {
      throw ViewReduceError.damaged
    }
    for _ in 0..<Int(members) {
      guard let length = reader.varint(), let name = reader.bytes(Int(clamping: length)) else {
        throw ViewReduceError.damaged
      }
      let key = ByteString([UInt8](copying: name))
      let before = self.members.count
      try self.members[key, default: SumNode()].merge(&reader, width: &width, depth: depth + 1)
      if self.members.count > before { width += key.bytes.count + SumNode.widthOfMember }
    }
  }

  // MARK: Result

  /// Appends the result. Returns false, with the JSON of the numbers beside the objects in `cause`, if values of
  /// both kinds meet at a place.
  func write(to json: inout [UInt8], isWhole: Bool, cause: inout [UInt8]) throws -> Bool {
    if objects > 0, numbers > 0 || arrays > 0 {
      try writeNumbers(to: &cause, isWhole: isWhole)
      return false
    }
    guard objects > 0 else {
      try writeNumbers(to: &json, isWhole: isWhole)
      return true
    }
    json.append(UInt8(ascii: "{"))
    for (index, (name, node)) in members.sorted(by: { $0.key < $1.key }).enumerated() {
      if index > 0 { json.append(UInt8(ascii: ",")) }
      json.append(jsonString: name.string)
      json.append(UInt8(ascii: ":"))
      guard try node.write(to: &json, isWhole: false, cause: &cause) else { return false }
    }
    json.append(UInt8(ascii: "}"))
    return true
  }

  private func writeNumbers(to json: inout [UInt8], isWhole: Bool) throws {
    guard arrays > 0 else {
      if let item = items.first { try item.sum.write(to: &json) } else { json.append(UInt8(ascii: "0")) }
      return
    }
    json.append(UInt8(ascii: "["))
    for (index, item) in items.enumerated() {
      if index > 0 { json.append(UInt8(ascii: ",")) }
      try item.sum.write(to: &json)
    }
    // CouchDB begins with the number 0.
    if items.isEmpty, isWhole { json.append(UInt8(ascii: "0")) }
    json.append(UInt8(ascii: "]"))
  }
}

private final class StructuredSumReduction: Reduction {
  /// Sums up to this length aren't looked at, as in CouchDB.
  private static let widthOfResult = 4_906
  /// Nor are partial sums up to this width: what is written of rows depends on how many are in their block.
  private static let widthOfPartial = 64 << 10
  /// Nor are sums that rows are still added to.
  private static let widthOfAll = 1 << 20

  private var node = SumNode()
  private var fault: [UInt8]?
  /// Why the sum is too wide.
  private var excess: String?
  /// The bytes of the values' JSON.
  private var input = 0
  /// The bytes of the sum's JSON, about.
  private var width = 0

  func reset() {
    node = SumNode()
    fault = nil
    excess = nil
    (input, width) = (0, 0)
  }

  private static func excess(_ input: Int, _ output: Int) -> String {
    "Reduce output must shrink more rapidly: input size: \(input) output size: \(output)"
  }

  private func isWide(_ width: Int, limit: Int) -> Bool { width > limit && width > input / 2 }

  /// Forgets the sum if it grows with the rows.
  private func checkWidth() {
    guard excess == nil, isWide(width, limit: Self.widthOfAll) else { return }
    excess = Self.excess(input, width)
    node = SumNode()
  }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    guard fault == nil, excess == nil else { return }
    try row.withValue(expanding: expanding) { value in
      input += value.count
      var scanner = JSONScanner(value)
      if let unfit = try node.apply(&scanner, removing: false, width: &width) {
        fault = StructuredSumReduction.cause(unfit)
      }
    }
    checkWidth()
  }

  /// The JSON that an error shows.
  private static func cause(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    if text.count <= 4096 { return Array(text) }
    var json: [UInt8] = []
    json.append(jsonString: String(decoding: text.prefix(4096), as: UTF8.self))
    return json
  }

  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    try apply(row, removing: false)
  }

  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws -> Bool {
    try apply(row, removing: true)
  }

  private func apply(_ row: borrowing StoredRow, removing: Bool) throws -> Bool {
    guard fault == nil, excess == nil, row.kind == .json else { return false }
    let fits = try row.valueJSON.withUnsafeBytes { value in
      input += removing ? -value.count : value.count
      var scanner = JSONScanner(value)
      return try node.apply(&scanner, removing: removing, width: &width) == nil
    }
    // Whether a wide sum is an error depends on the order of rows.
    return fits && width <= Self.widthOfPartial
  }

  func merge(_ partial: RawSpan) throws {
    guard fault == nil, excess == nil else { return }
    var reader = ByteReader(partial)
    switch reader.byte() {
    case 0:
      guard let bytes = reader.varint(), bytes <= UInt64(Int.max / 2) else { throw ViewReduceError.damaged }
      input += Int(bytes)
      try node.merge(&reader, width: &width)
      guard reader.rest.byteCount == 0 else { throw ViewReduceError.damaged }
      checkWidth()
    case 2: excess = String(copying: reader.rest)
    case 1: fault = [UInt8](copying: reader.rest)
    default: throw ViewReduceError.damaged
    }
  }

  func write(to partial: inout ByteBuffer) {
    if let fault {
      partial.append(1)
      fault.withUnsafeBytes { partial.append($0) }
    } else if var excess = excess
      ?? (isWide(width, limit: Self.widthOfPartial) ? Self.excess(input, width) : nil)
    {
      partial.append(2)
      excess.withUTF8 { partial.append(UnsafeRawBufferPointer($0)) }
    } else {
      partial.append(0)
      partial.append(varint: UInt64(input))
      node.write(to: &partial)
    }
  }

  private static let reason =
    "The _sum function requires that map values be numbers, arrays of numbers, or objects. Objects cannot be "
    + "mixed with other data structures. Objects can be arbitrarily nested, provided that the values for all "
    + "fields are themselves numbers, arrays of numbers, or objects."

  func result(to json: inout [UInt8]) throws {
    var cause: [UInt8] = fault ?? []
    var excess = excess
    if fault == nil, excess == nil {
      let start = json.count
      if try node.write(to: &json, isWhole: true, cause: &cause) {
        guard isWide(json.count - start, limit: Self.widthOfResult) else { return }
        excess = Self.excess(input, json.count - start)
      }
      json.removeSubrange(start...)
    }
    if let excess {
      json.append(contentsOf: "{\"error\":\"builtin_reduce_error\",\"reason\":".utf8)
      json.append(jsonString: excess)
      json.append(UInt8(ascii: "}"))
      return
    }
    json.append(contentsOf: "{\"error\":\"builtin_reduce_error\",\"reason\":".utf8)
    json.append(jsonString: StructuredSumReduction.reason)
    json.append(contentsOf: ",\"caused_by\":".utf8)
    json.append(contentsOf: cause)
    json.append(UInt8(ascii: "}"))
  }
}
