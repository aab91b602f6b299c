import Fleece

// Documents and their values print as canonical JSON: names sorted by their bytes, no spaces, never cut.

extension Document: CustomStringConvertible, CustomDebugStringConvertible {
  /// The canonical JSON of the body, whole. If the body can't be read, a text that says so.
  public var description: String {
    do { return String(decoding: try json(), as: UTF8.self) } catch { return "(no JSON: \(error))" }
  }

  /// The document's ID, its revision and the canonical JSON of its body.
  public var debugDescription: String { "\(id) \(revisionID) \(description)" }
}

extension MutableDocument: CustomStringConvertible, CustomDebugStringConvertible {
  /// The canonical JSON of the body, whole. For a body that JSON can't represent, a text that says why.
  public var description: String { body.description }

  /// The document's ID, the revision that it is based on, and the canonical JSON of its body.
  public var debugDescription: String {
    "\(id) \(revisionID.map { $0.description } ?? "(not saved)") \(description)"
  }
}

extension Property: CustomStringConvertible, CustomDebugStringConvertible {
  /// The canonical JSON of the value, whole; `(missing)` if there is none. If it can't be read, a text that
  /// says so.
  public var description: String {
    do { return try json() ?? "(missing)" } catch { return "(no JSON: \(error))" }
  }

  /// The canonical JSON of the value.
  public var debugDescription: String { description }
}

extension PropertyArray: CustomStringConvertible {
  /// The canonical JSON of the array.
  public var description: String { property.description }
}

extension PropertyDictionary: CustomStringConvertible {
  /// The canonical JSON of the object.
  public var description: String { property.description }
}
