/// The nodes that a write transaction has changed, by number.
final class ChangedNodes {
  @exclusivity(unchecked) var nodes: [UInt64: Node] = [:]
}
