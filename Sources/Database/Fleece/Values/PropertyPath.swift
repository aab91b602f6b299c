// Paths to nested properties.
//
//   path  = step { "." name | "[" index "]" }, or empty: the value itself
//   step  = name | "[" index "]"
//   name  = bytes other than . [ ], or any byte after a backslash; not empty
//   index = digits, or "-" digits counting from the end

/// A path such as `geo.lat` or `reviews[0].author`, resolved once and evaluated in place.
///
/// Resolve it again when the shared key table has grown, as for `Key`.
package struct PropertyPath: Sendable, Hashable {
  /// One step into a value.
  package enum Step: Sendable, Hashable {
    /// A step to the member with a name.
    case key(Key)
    /// A step to the item at an index. A negative index counts from the end.
    case index(Int)
  }

  /// The steps, outermost first.
  package let steps: [Step]

  /// The steps without their names, so that evaluation retains nothing.
  fileprivate struct Move: BitwiseCopyable, Hashable {
    /// The number of a shared key, or an index.
    var number: Int
    var isIndex: Bool
  }

  fileprivate let moves: [Move]

  /// Creates a path from steps.
  package init(steps: [Step]) {
    self.steps = steps
    moves = steps.map {
      switch $0 {
      case .key(let key): Move(number: key.number, isIndex: false)
      case .index(let index): Move(number: index, isIndex: true)
      }
    }
  }

  /// Parses a path and resolves its names.
  ///
  /// - Throws: `FleeceError.invalidPath`.
  package init(_ path: String, in sharedKeys: SharedKeys) throws(FleeceError) {
    let bytes = Array(path.utf8)
    var steps: [Step] = []
    var index = 0
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "[") {
        guard let close = bytes[index...].firstIndex(of: UInt8(ascii: "]")),
          let item = Int(String(decoding: bytes[(index + 1)..<close], as: UTF8.self))
        else { throw .invalidPath(path: path, reason: "expected an index in brackets", offset: index) }
        steps.append(.index(item))
        index = close + 1
        if index < bytes.count, bytes[index] != UInt8(ascii: "."), bytes[index] != UInt8(ascii: "[") {
          throw .invalidPath(path: path, reason: "expected \".\" or \"[\"", offset: index)
        }
      } else {
        if !steps.isEmpty { index += 1 }
        let start = index
        var name: [UInt8] = []
        while index < bytes.count, bytes[index] != UInt8(ascii: "."), bytes[index] != UInt8(ascii: "[") {
          if bytes[index] == UInt8(ascii: "]") {
            throw .invalidPath(path: path, reason: "\"]\" without \"[\"", offset: index)
          }
          if bytes[index] == UInt8(ascii: "\\") { index += 1 }
          guard index < bytes.count else {
            throw .invalidPath(path: path, reason: "nothing follows the backslash", offset: index)
          }
          name.append(bytes[index])
          index += 1
        }
        guard !name.isEmpty else {
          throw .invalidPath(path: path, reason: "expected a name", offset: start)
        }
        steps.append(.key(Key(String(decoding: name, as: UTF8.self), in: sharedKeys)))
      }
    }
    self.init(steps: steps)
  }
}

extension UnsafeValue {
  /// The value at the end of a path, or nil if a step finds nothing. Allocates nothing.
  package subscript(path: PropertyPath) -> UnsafeValue? {
    var value = self
    for position in path.moves.indices {
      let move = path.moves[position]
      var next: UnsafeValue?
      if move.isIndex {
        next = value[move.number < 0 ? value.count &+ move.number : move.number]
      } else {
        var mayBeString = true
        if move.number >= 0 { (next, mayBeString) = value.member(number: move.number) }
        if mayBeString, case .key(let key) = path.steps[position] { next = value[key] }
      }
      guard let next else { return nil }
      value = next
    }
    return value
  }
}
