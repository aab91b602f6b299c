import Foundation
import Testing

/// Waits until `condition` holds, which something in the background brings about; fails after half a minute.
///
/// It asks more and more seldom, since many conditions are requests or commands, which take the processor from what they wait for.
package func eventually(
  _ condition: () throws -> Bool, sourceLocation: SourceLocation = #_sourceLocation
) rethrows {
  let deadline = Date(timeIntervalSinceNow: 30)
  var pause: UInt32 = 500
  while try !condition() {
    guard Date() < deadline else {
      Issue.record("it didn't happen", sourceLocation: sourceLocation)
      return
    }
    usleep(pause)
    pause = min(pause + pause / 4, 20_000)
  }
}
