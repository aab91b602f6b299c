// A delta between two JSON values, as Couchbase Lite sends it in the place of a body:
//
//   delta        := scalar                          the new value: null, a boolean, a number, a string
//                 | []                              the member is removed
//                 | [value]                         the new value
//                 | [edits, 0, 2]                   edits of a string
//                 | {name: delta, …}                changes of an object's members
//                 | {"N": delta, …, "M-": [value…]} changes of an array's items; from item M on the rest is replaced
//   edits        := edit…
//   edit         := count "="                       so many bytes stay
//                 | count "-"                       so many bytes are removed
//                 | count "+" bytes "|"             these bytes, `count` of them, are inserted
//
// Counts are of UTF-8 bytes.

import Fleece

/// Makes and applies deltas between JSON values.
package enum JSONDelta {
  /// Why a delta can't be applied.
  package struct Mismatch: Error, Sendable, Equatable, CustomStringConvertible {
    /// What doesn't fit, without contents of documents.
    package let description: String
  }

  /// Strings below this number of bytes aren't edited but replaced.
  static let shortestEditedString = 60

  // MARK: Making

  /// Returns the delta that makes `new` of `old`; nil if both are equal.
  package static func make(from old: JSONValue, to new: JSONValue) -> JSONValue? {
    if old == new { return nil }
    switch (old, new) {
    case (.object(let old), .object(let new)):
      var changes = JSONObject()
      for (name, value) in new {
        if let before = old[name] {
          if let change = make(from: before, to: value) { changes[name] = change }
        } else {
          changes[name] = replacement(value)
        }
      }
      for (name, _) in old where new[name] == nil { changes[name] = .array([]) }
      // An empty object would mean that nothing changes, and it never does here.
      return .object(changes)
    case (.array(let old), .array(let new)):
      var changes = JSONObject()
      for (index, (old, new)) in zip(old, new).enumerated() {
        if let change = make(from: old, to: new) { changes[String(index)] = change }
      }
      if old.count != new.count {
        let kept = min(old.count, new.count)
        changes["\(kept)-"] = .array(Array(new[kept...]))
      }
      return .object(changes)
    case (.string(let old), .string(let new)): return edits(from: old, to: new) ?? replacement(.string(new))
    default: return replacement(new)
    }
  }

  private static func replacement(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array, .object: .array([value])
    default: value
    }
  }

  /// Edits of a long string whose beginning or end stays; nil if they would be longer than the string.
  private static func edits(from old: String, to new: String) -> JSONValue? {
    guard new.utf8.count >= shortestEditedString, old.utf8.count >= shortestEditedString else { return nil }
    let (a, b) = (Array(old.utf8), Array(new.utf8))
    let shorter = min(a.count, b.count)
    var start = 0
    while start < shorter, a[start] == b[start] { start += 1 }
    // Neither side is cut inside a character.
    while start > 0, !isBoundary(a, start) || !isBoundary(b, start) { start -= 1 }
    var end = 0
    while end < shorter - start, a[a.count - 1 - end] == b[b.count - 1 - end] { end += 1 }
    while end > 0, !isBoundary(a, a.count - end) || !isBoundary(b, b.count - end) { end -= 1 }
    var text = ""
    if start > 0 { text += "\(start)=" }
    if a.count - end > start { text += "\(a.count - end - start)-" }
    if b.count - end > start {
      text += "\(b.count - end - start)+\(String(decoding: b[start..<b.count - end], as: UTF8.self))|"
    }
    if end > 0 { text += "\(end)=" }
    return text.utf8.count + 6 < b.count ? .array([.string(text), 0, 2]) : nil
  }

  private static func isBoundary(_ bytes: [UInt8], _ index: Int) -> Bool {
    index >= bytes.count || bytes[index] & 0xC0 != 0x80
  }

  // MARK: Applying

  /// Returns what `delta` makes of `old`. Throws `Mismatch` if it isn't a delta of this value.
  package static func apply(_ delta: JSONValue, to old: JSONValue) throws -> JSONValue {
    guard let value = try applied(delta, old) else {
      throw Mismatch(description: "the delta removes the body")
    }
    return value
  }

  /// The new value; nil if it is removed.
  private static func applied(_ delta: JSONValue, _ old: JSONValue?) throws -> JSONValue? {
    switch delta {
    case .array(let items):
      switch items.count {
      case 0: return nil
      case 1: return items[0]
      case 3:
        guard case .string(let edits) = items[0], items[1] == 0, items[2] == 2, case .string(let text)? = old
        else { throw Mismatch(description: "edits of something that isn't a string") }
        return .string(try edited(text, edits))
      default: throw Mismatch(description: "a change has \(items.count) items")
      }
    case .object(let changes):
      switch old {
      case .object(var members)?:
        for (name, change) in changes {
          if let value = try applied(change, members[name]) {
            members[name] = value
          } else {
            members.removeValue(forKey: name)
          }
        }
        return .object(members)
      case .array(let items)?: return .array(try changed(items, changes))
      default: throw Mismatch(description: "changes of something that has no members")
      }
    default: return delta
    }
  }

  private static func changed(_ items: [JSONValue], _ changes: JSONObject) throws -> [JSONValue] {
    var changed = items
    var tail: (start: Int, items: [JSONValue])?
    for (name, change) in changes {
      if name.utf8.last == UInt8(ascii: "-") {
        guard let start = Int(name.dropLast()), start >= 0, start <= items.count, tail == nil,
          case .array(let rest) = change
        else { throw Mismatch(description: "the rest of an array can't be replaced") }
        tail = (start, rest)
      } else {
        guard let index = Int(name), items.indices.contains(index),
          let value = try applied(change, items[index])
        else { throw Mismatch(description: "a change of an item that an array doesn't have") }
        changed[index] = value
      }
    }
    if let tail { changed.replaceSubrange(tail.start..., with: tail.items) }
    return changed
  }

  private static func edited(_ text: String, _ edits: String) throws -> String {
    let (old, edits) = (Array(text.utf8), Array(edits.utf8))
    let broken = Mismatch(description: "edits don't fit a string")
    var new: [UInt8] = []
    var (position, index) = (0, 0)
    while index < edits.count {
      var count = 0
      let first = index
      while index < edits.count, case let digit = edits[index] &- UInt8(ascii: "0"), digit < 10 {
        count = count * 10 + Int(digit)
        guard count <= 1 << 40 else { throw broken }
        index += 1
      }
      guard index > first, index < edits.count else { throw broken }
      let edit = edits[index]
      index += 1
      switch edit {
      case UInt8(ascii: "="):
        guard count <= old.count - position else { throw broken }
        new += old[position..<position + count]
        position += count
      case UInt8(ascii: "-"):
        guard count <= old.count - position else { throw broken }
        position += count
      case UInt8(ascii: "+"):
        guard count < edits.count - index, edits[index + count] == UInt8(ascii: "|") else { throw broken }
        new += edits[index..<index + count]
        index += count + 1
      default: throw broken
      }
    }
    guard position == old.count, let result = String(validating: new, as: UTF8.self) else { throw broken }
    return result
  }
}
