// Values print as canonical JSON: names sorted by their bytes, no spaces, never cut.

extension JSONValue: CustomStringConvertible, CustomDebugStringConvertible {
  /// The canonical JSON of the value, whole. For a value that JSON can't represent, a text that says why.
  public var description: String {
    do { return try canonicalJSON() } catch { return "(no JSON: \(error))" }
  }

  /// The canonical JSON of the value.
  public var debugDescription: String { description }
}

extension JSONObject: CustomStringConvertible, CustomDebugStringConvertible {
  /// The canonical JSON of the object, whole. For an object that JSON can't represent, a text that says why.
  public var description: String { JSONValue.object(self).description }

  /// The canonical JSON of the object.
  public var debugDescription: String { description }
}
