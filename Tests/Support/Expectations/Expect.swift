// Expectations as functions. Testing's `#expect` costs the compiler fifteen times as much, since each one becomes
// closures that it has to check. With thousands of them that is a fifth of a build. What takes closures or awaits stays a macro.

import Foundation
import Testing

/// Records a failure unless the condition is true. The failure shows the line of the source. Any thread of a test may call.
///
/// `comment` is made only for a failure. Say in it what the reader has to know to understand the failure, such as a seed.
package func expect(
  _ condition: @autoclosure () throws -> Bool, _ comment: @autoclosure () -> Comment? = nil,
  fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
) rethrows {
  if try condition() { return }
  let place = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
  record(source(filePath, line), comment(), at: place)
}

/// Records a failure with both values unless they are equal.
package func expect<Value: Equatable>(
  _ found: @autoclosure () throws -> Value, equals wanted: @autoclosure () throws -> Value,
  _ comment: @autoclosure () -> Comment? = nil,
  fileID: String = #fileID, filePath: String = #filePath, line: Int = #line, column: Int = #column
) rethrows {
  let (found, wanted) = (try found(), try wanted())
  if found == wanted { return }
  let place = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
  record(
    "\(text(of: found)), wanted \(text(of: wanted)): \(source(filePath, line))", comment(), at: place)
}

private func record(_ what: String, _ comment: Comment?, at place: SourceLocation) {
  Issue.record(Comment(rawValue: what + (comment.map { ": \($0.rawValue)" } ?? "")), sourceLocation: place)
}

/// A value for a reader, cut where it is long.
private func text(of value: some Equatable) -> String {
  let text = String(reflecting: value)
  return text.count <= 500 ? text : "\(text.prefix(500))… (\(text.count) characters)"
}

/// The line of the source, if the source is there.
private func source(_ path: String, _ line: Int) -> String {
  guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return "line \(line)" }
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  guard lines.indices.contains(line - 1) else { return "line \(line)" }
  return lines[line - 1].trimmingCharacters(in: .whitespaces)
}
