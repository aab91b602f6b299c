import Foundation
import Testing

/// Waits until `condition` holds, which something in the background brings about; fails after half a minute.
package func eventually(
  _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) rethrows {
  let deadline = Date(timeIntervalSinceNow: 30)
  while try !condition() {
    guard Date() < deadline else {
      Issue.record("it didn't happen", sourceLocation: sourceLocation)
      return
    }
    usleep(500)
  }
}
