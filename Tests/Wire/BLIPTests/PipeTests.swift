import Expectations
import Storage
import Testing

@testable import BLIP
import Transport

@Suite("The transport in memory") struct PipeTests {
  private final class Log: Sendable {
    let state = Lock<(received: [[UInt8]], end: TransportClose?, sent: Int)>(([], nil, 0))

    func receive(_ transport: PipeTransport) {
      transport.receive { [self] result in
        state.withLock {
          switch result {
          case .success(let messages): $0.received += messages
          case .failure(let close): $0.end = close
          }
        }
      }
    }

    func send(_ transport: PipeTransport, _ messages: [[UInt8]]) {
      transport.send(messages) { [self] close in
        state.withLock {
          $0.sent += 1
          if let close { $0.end = close }
        }
      }
    }

    var received: [[UInt8]] { state.withLock { $0.received } }
    var end: TransportClose? { state.withLock { $0.end } }
    var sent: Int { state.withLock { $0.sent } }
  }

  @Test("A sender that has filled the pipe waits until the receiver asks")
  func bounded() {
    let (left, right) = PipeTransport.pair(capacity: 10)
    let (sender, receiver) = (Log(), Log())
    sender.send(left, [[1, 2, 3]])
    expect(sender.sent, equals: 1)
    sender.send(left, [[4, 5, 6], [7, 8, 9, 10]])
    expect(sender.sent, equals: 1)
    receiver.receive(right)
    expect(receiver.received, equals: [[1, 2, 3], [4, 5, 6], [7, 8, 9, 10]])
    expect(sender.sent, equals: 2)
    receiver.receive(right)
    sender.send(left, [[11]])
    expect(receiver.received.last == [11] && sender.sent == 3)
  }

  @Test("The receiver gets what was sent before the end, then the end, and the end again")
  func close() {
    let (left, right) = PipeTransport.pair()
    let (sender, receiver) = (Log(), Log())
    sender.send(left, [[1]])
    let end = TransportClose.webSocket(1001, "later")
    left.close(end)
    left.close(.normal)
    receiver.receive(right)
    expect(receiver.received == [[1]] && receiver.end == nil)
    for _ in 0..<2 { receiver.receive(right) }
    expect(receiver.received == [[1]] && receiver.end == end)
    sender.send(left, [[2]])
    expect(sender.end, equals: end)
    let other = Log()
    other.send(right, [[3]])
    expect(other.end, equals: end)
  }

  @Test("Calls that wait get the end", arguments: [false, true])
  func closeWaiting(isOwn: Bool) {
    let (left, right) = PipeTransport.pair(capacity: 1)
    let (sender, receiver) = (Log(), Log())
    sender.send(left, [[1, 2, 3]])
    receiver.receive(left)
    expect(sender.sent, equals: 0)
    (isOwn ? left : right).close(.normal)
    expect(sender.end == .normal && receiver.end == .normal)
  }

  @Test("A close says whether another try may help")
  func transient() {
    expect(TransportClose.webSocket(1001).isTransient && TransportClose.webSocket(1011, "x").isTransient)
    expect(!TransportClose.normal.isTransient && !TransportClose.webSocket(4002).isTransient)
    expect(TransportClose.webSocket(1011, "x").description, equals: "webSocket 1011 “x”")
  }
}
