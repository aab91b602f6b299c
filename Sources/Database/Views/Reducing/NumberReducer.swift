import Bytes
import Fleece

//   partial   := 00  count:varint  [sum]  [squares]  [least  greatest]     the parts that the kind needs
//              | 01  length:varint  document ID  excerpt                   a value that isn't a number
//   sum, squares   := doubles:varint  sum                                   ExactSum.swift; how many were doubles
//   least, greatest := number                                               ReducedNumber.swift; absent without rows

/// Reduces numbers to one value. Its values are JSON numbers, and strings with the text of one.
struct NumberReducer: Reducer {
  enum Kind: String {
    case sum, average, standardDeviation, stats, min, max

    var needsSum: Bool { self != .min && self != .max }
    var needsSquares: Bool { self == .standardDeviation || self == .stats }
    var needsExtremes: Bool { self == .stats || self == .min || self == .max }
  }

  let kind: Kind

  var identity: String { "\(kind.rawValue) 1" }
  var canRereduce: Bool { true }
  var refusesValues: Bool { true }
  func makeReduction() -> any Reduction { NumberReduction(kind) }
}

/// The value of a row that isn't a number: the first such row.
struct ReductionFault {
  /// The longest excerpt, in bytes.
  static let excerptBytes = 128

  let documentID: String
  let excerpt: String

  init(documentID: String, value: UnsafeRawBufferPointer) {
    self.documentID = documentID
    let cut = value.count > ReductionFault.excerptBytes
    excerpt =
      String(decoding: value.prefix(ReductionFault.excerptBytes), as: UTF8.self) + (cut ? "…" : "")
  }

  init(_ reader: inout ByteReader) throws {
    guard let length = reader.varint(), let id = reader.bytes(Int(clamping: length)) else {
      throw ViewReduceError.damaged
    }
    documentID = String(copying: id)
    excerpt = String(copying: reader.rest)
  }

  func write(to partial: inout ByteBuffer) {
    var documentID = documentID
    var excerpt = excerpt
    partial.append(varint: UInt64(documentID.utf8.count))
    documentID.withUTF8 { partial.append(UnsafeRawBufferPointer($0)) }
    excerpt.withUTF8 { partial.append(UnsafeRawBufferPointer($0)) }
  }

  var error: ViewReduceError {
    ViewReduceError(.notANumber, "a value of a view isn't a number: \(excerpt)", documentID: documentID)
  }
}

extension ReducedNumber {
  /// Reads a value that counts as a number: a number, or a string with the text of one.
  init?(value text: UnsafeRawBufferPointer) {
    guard let first = text.first else { return nil }
    guard first == UInt8(ascii: "\"") else {
      self.init(text)
      return
    }
    guard text.count > 2 else { return nil }
    self.init(UnsafeRawBufferPointer(rebasing: text[1..<text.count - 1]))
  }
}

private final class NumberReduction: Reduction {
  private let kind: NumberReducer.Kind
  private var count: UInt64 = 0
  private var sum = NumberSum()
  private var squares = NumberSum()
  private var least: ReducedNumber?
  private var greatest: ReducedNumber?
  private var fault: ReductionFault?

  init(_ kind: NumberReducer.Kind) { self.kind = kind }

  func reset() {
    count = 0
    sum = NumberSum()
    squares = NumberSum()
    least = nil
    greatest = nil
    fault = nil
  }

  func add(_ row: borrowing StoredRow, expanding: DocumentExpansion) throws {
    guard fault == nil else { return }
    if let number = NumberReduction.number(row) { return add(number) }
    let documentID = row.documentID
    try row.withValue(expanding: expanding) { fault = ReductionFault(documentID: documentID, value: $0) }
  }

  private static func number(_ row: borrowing StoredRow) -> ReducedNumber? {
    guard row.kind == .json else { return nil }
    return row.valueJSON.withUnsafeBytes { ReducedNumber(value: $0) }
  }

  private func add(_ number: ReducedNumber) {
    count += 1
    if kind.needsSum { sum.add(number) }
    if kind.needsSquares { squares.addSquare(of: number) }
    if kind.needsExtremes {
      least = least.map { $0.least(number) } ?? number
      greatest = greatest.map { $0.greatest(number) } ?? number
    }
  }

  func insert(_ row: borrowing StoredRow, expanding: DocumentExpansion) -> Bool {
    guard let number = NumberReduction.number(row) else { return false }
    // The first fault stays the first one.
    if fault == nil { add(number) }
    return true
  }

  func remove(_ row: borrowing StoredRow, expanding: DocumentExpansion) -> Bool {
    guard let number = NumberReduction.number(row) else { return false }
    guard fault == nil else { return true }
    guard count > 1 else { return false }
    if let least, let greatest, least.compare(number) >= 0 || greatest.compare(number) <= 0 { return false }
    count -= 1
    if kind.needsSum { sum.remove(number) }
    if kind.needsSquares { squares.removeSquare(of: number) }
    return true
  }

  func merge(_ partial: RawSpan) throws {
    guard fault == nil else { return }
    var reader = ByteReader(partial)
    guard let form = reader.byte(), form <= 1 else { throw ViewReduceError.damaged }
    if form == 1 {
      fault = try ReductionFault(&reader)
      return
    }
    guard let more = reader.varint(), more <= UInt64.max - count else { throw ViewReduceError.damaged }
    count += more
    if kind.needsSum { try sum.merge(&reader) }
    if kind.needsSquares { try squares.merge(&reader) }
    if kind.needsExtremes, more > 0 {
      let low = try ReducedNumber(&reader)
      let high = try ReducedNumber(&reader)
      least = least.map { $0.least(low) } ?? low
      greatest = greatest.map { $0.greatest(high) } ?? high
    }
    guard reader.rest.byteCount == 0 else { throw ViewReduceError.damaged }
  }

  func write(to partial: inout ByteBuffer) {
    if let fault {
      partial.append(1)
      return fault.write(to: &partial)
    }
    partial.append(0)
    partial.append(varint: count)
    if kind.needsSum { sum.write(to: &partial) }
    if kind.needsSquares { squares.write(to: &partial) }
    if let least, let greatest {
      least.write(to: &partial)
      greatest.write(to: &partial)
    }
  }

  func result(to json: inout [UInt8]) throws {
    if let fault { throw fault.error }
    switch kind {
    case .sum: try sum.write(to: &json)
    case .average:
      guard count > 0 else { return json.append(contentsOf: "null".utf8) }
      let average = sum.sum.double / Double(count)
      guard average.isFinite else { throw NumberReduction.overflow }
      json.append(double: average)
    case .standardDeviation: try writeDeviation(to: &json)
    case .min: write(least, to: &json)
    case .max: write(greatest, to: &json)
    case .stats:
      json.append(contentsOf: "{\"count\":\(count),\"sum\":".utf8)
      try sum.write(to: &json)
      json.append(contentsOf: ",\"sumsqr\":".utf8)
      try squares.write(to: &json)
      json.append(contentsOf: ",\"min\":".utf8)
      write(least, to: &json)
      json.append(contentsOf: ",\"max\":".utf8)
      write(greatest, to: &json)
      json.append(UInt8(ascii: "}"))
    }
  }

  private func write(_ number: ReducedNumber?, to json: inout [UInt8]) {
    guard let number else { return json.append(contentsOf: "null".utf8) }
    number.write(to: &json)
  }

  /// The square root of (n · squares - sum²) / (n · (n - 1)). The dividend is exact.
  private func writeDeviation(to json: inout [UInt8]) throws {
    guard count > 1 else { return json.append(contentsOf: "null".utf8) }
    let total = sum.sum.magnitude.value
    let dividend = (Magnitude(count) * squares.sum.magnitude.value - total * total).scaled
    var exponent = dividend.exponent
    var quotient = dividend.significand / (Double(count) * Double(count - 1))
    if exponent & 1 != 0 {
      quotient *= 2
      exponent -= 1
    }
    let deviation = Double(sign: .plus, exponent: exponent / 2, significand: quotient.squareRoot())
    guard deviation.isFinite else { throw NumberReduction.overflow }
    json.append(double: deviation)
  }

  private static var overflow: ViewReduceError {
    ViewReduceError(.overflow, "a reduction is larger than any number of JSON")
  }
}
