/// A text that no log, no error and no dump shows: a password, a cookie.
package struct Secret: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible,
  CustomDebugStringConvertible, CustomReflectable
{
  /// The text.
  package let value: String

  package init(_ value: String) { self.value = value }
  package init(stringLiteral value: String) { self.value = value }

  package var description: String { "(secret)" }
  package var debugDescription: String { "(secret)" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
