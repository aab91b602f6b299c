import Transport

/// What the fuzz target does with the head of an answer.
package enum AnswerHeadFuzzing {
  /// Reads bytes as an answer, whole and from its beginnings, and what it means. Traps if the limits don't hold.
  package static func test(_ bytes: [UInt8]) {
    guard let found = try? AnswerHead.read(bytes) else { return }
    let (head, length) = found
    precondition(length <= min(bytes.count, AnswerHead.maximumBytes), "a head of \(length) bytes")
    precondition(head.headers.count <= AnswerHead.maximumHeaders, "\(head.headers.count) headers")
    precondition((100...999).contains(head.status), "the status \(head.status)")
    let again = try? AnswerHead.read([UInt8](bytes[..<length]))
    precondition(again?.head == head && again?.length == length, "the bytes after the head matter")
    guard let url = WebSocketURL("wss://host:1/a/b?c") else { return }
    for location in head.values("location") { _ = url.resolve(location)?.hostHeader }
    do throws(TransportClose) { _ = try WebSocketHandshake(protocols: ["a", "b"]).meaning(head) } catch {
      precondition(!error.reason.isEmpty || error.domain == .http, "an error without a reason")
    }
  }
}
