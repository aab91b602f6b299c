import Bytes
import Expectations
import Foundation
import Storage
import Testing

@testable import BLIP

private let folder = EnvironmentVariable.value("TOUCHSTONE_DATA").map { $0 + "/sync-transcripts" }

/// A recorded message or ACK, as the recording says it.
private struct Recorded {
  var connection: Int
  var direction: String
  var frame: [UInt8]
  var blip: [String: Any]

  var message: [String: Any]? { blip["message"] as? [String: Any] }

  /// The recorded body; nil if only its hash or its JSON is there.
  var body: [UInt8]? {
    guard let message else { return nil }
    if let text = message["body_text"] as? String { return utf8(text) }
    if let hex = message["body_hex"] as? String { return bytes(hex) }
    return message["body_len"] as? Int == 0 ? [] : nil
  }
}

/// The recorded sessions whose frames are there.
private struct Transcripts {
  let name: String
  let frames: [Recorded]

  nonisolated(unsafe) static let all: [Transcripts] = {
    guard let folder else { return [] }
    let names = (FileManager.default.enumerator(atPath: folder)?.allObjects ?? []).compactMap {
      $0 as? String
    }
    return names.filter { $0.hasSuffix("transcript.jsonl") }.sorted().compactMap { name in
      guard let data = FileManager.default.contents(atPath: folder + "/" + name) else { return nil }
      let frames = data.split(separator: UInt8(ascii: "\n")).compactMap { line -> Recorded? in
        guard let object = try? JSONSerialization.jsonObject(with: line) as? [String: Any],
          let hex = object["hex"] as? String, let blip = object["blip"] as? [String: Any],
          let connection = object["conn"] as? Int, let direction = object["dir"] as? String
        else { return nil }
        return Recorded(connection: connection, direction: direction, frame: bytes(hex), blip: blip)
      }
      return frames.isEmpty ? nil : Transcripts(name: name, frames: frames)
    }
  }()

  /// The frames of each connection of the session.
  var connections: [[Recorded]] {
    Dictionary(grouping: frames, by: \.connection).sorted { $0.key < $1.key }.map(\.value)
  }
}

/// Both ends of a recorded connection: frames of one direction are read by one session, as its peer's.
private struct Ends {
  let client = BLIPSession()
  let server = BLIPSession()

  func receiver(of frame: Recorded) -> BLIPSession { frame.direction == "C>S" ? server : client }

  /// Makes a session believe that it has sent what its side of the recording sent.
  func noteSent(_ frame: Recorded) throws {
    let sender = frame.direction == "C>S" ? client : server
    guard frame.blip["type"] as? String == "MSG", let number = frame.blip["no"] as? Int else { return }
    let flags = FrameFlags(rawValue: UInt8(frame.blip["flags"] as? Int ?? 0))
    guard sender.lastSentRequest < number, !flags.contains(.noReply) else { return }
    sender.lastSentRequest = UInt64(number)
    sender.requestsInFlight += 1
    sender.awaiting[UInt64(number)] = try OutgoingMessage(BLIPRequest("x"))
  }
}

@Suite(
  "Recorded sessions",
  .enabled(if: folder != nil, "TOUCHSTONE_DATA is not set: there are no recorded sessions to read"))
struct TranscriptTests {
  @Test("Every recorded frame decodes, and messages and ACKs are those of the recording")
  func decode() throws {
    var (frameCount, messageCount, ackCount) = (0, 0, 0)
    for transcript in Transcripts.all {
      for connection in transcript.connections {
        let ends = Ends()
        // The recorded ACKs by the direction of what they acknowledge; and ours.
        var recordedAcks: [String: [[UInt8]]] = [:]
        var acks: [String: [[UInt8]]] = [:]
        for frame in connection {
          frameCount += 1
          try ends.noteSent(frame)
          let receiver = ends.receiver(of: frame)
          let event = try receiver.receive(frame.frame)
          while let ack = receiver.nextAckForTests() {
            acks[frame.direction == "C>S" ? "S>C" : "C>S", default: []].append(ack)
          }
          if frame.blip["ack_bytes"] != nil {
            recordedAcks[frame.direction, default: []].append(frame.frame)
            ackCount += 1
          }
          guard let recorded = frame.message else { continue }
          messageCount += 1
          guard case .message(let message, let counted, _) = event else {
            Issue.record("\(transcript.name): no message by a frame that ends one")
            continue
          }
          let properties = recorded["properties"] as? [String: String] ?? [:]
          let entries = message.properties.entries
          expect(
            Dictionary(entries.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
            equals: properties)
          expect(message.body.count, equals: recorded["body_len"] as? Int)
          if let body = frame.body { expect(Array(message.body), equals: body) }
          if let json = recorded["body_json"] {
            let ours = try JSONSerialization.jsonObject(with: Data(message.body), options: .fragmentsAllowed)
            expect((ours as? NSObject), equals: (json as? NSObject))
          }
          if message.kind == .request { receiver.release(countedBytes: counted) }
        }
        expect(acks, equals: recordedAcks, "\(transcript.name)")
        for session in [ends.client, ends.server] {
          // A session that was killed leaves messages unfinished.
          if session.requests.isEmpty, session.replies.isEmpty { expect(session.bufferedBytes, equals: 0) }
        }
      }
    }
    // The README counts 4,557, without the ACKs.
    expect(frameCount - ackCount, equals: 4_557)
    expect(messageCount > 4_000)
    print("transcripts: \(frameCount) frames, \(messageCount) messages, \(ackCount) ACKs")
  }

  @Test("Frames without compression are written again byte for byte, and compressed ones decode to the same")
  func encodeAgain() throws {
    var (same, compressed) = (0, 0)
    var (recordedBytes, ourBytes) = (0, 0)
    for transcript in Transcripts.all {
      for connection in transcript.connections {
        for direction in ["C>S", "S>C"] {
          var reader = FrameReader(limits: BLIPLimits())
          let writer = FrameWriter()
          var again = FrameReader(limits: BLIPLimits())
          for recorded in connection where recorded.direction == direction {
            guard let frame = try reader.read(recorded.frame), !frame.type.isAck else { continue }
            let written = try frame.payload.withUnsafeBytes {
              try writer.frame(frame.number, frame.flags, $0).bytes
            }
            if frame.flags.contains(.compressed) {
              try expect(again.read(written)?.payload, equals: frame.payload)
              compressed += 1
              recordedBytes += recorded.frame.count
              ourBytes += written.count
            } else {
              expect(written, equals: recorded.frame)
              try expect(again.read(written)?.payload, equals: frame.payload)
              same += 1
            }
          }
        }
      }
    }
    expect(same > 1_000 && compressed > 100)
    // Nearly as well compressed as by the originals, which take nearly twice as long.
    expect(Double(ourBytes) < Double(recordedBytes) * 1.06)
    print("written again: \(same) the same, \(compressed) compressed, \(ourBytes) bytes for \(recordedBytes)")
  }

  @Test("A frame that is cut at any byte, or has a wrong byte, is a typed error")
  func cut() throws {
    try cut("C>S")
    try cut("S>C")
  }

  private func cut(_ direction: String) throws {
    let transcript = try #require(
      Transcripts.all.first { $0.name == "v3/conflict-1-push-409/transcript.jsonl" })
    let frames = try #require(transcript.connections.first).filter { $0.direction == direction }.map(\.frame)
    var codes: [BLIPError.Code: Int] = [:]
    for (index, frame) in frames.enumerated() {
      for length in 0..<frame.count {
        let session = BLIPSession()
        for request in 1...40 {
          session.awaiting[UInt64(request)] = try OutgoingMessage(BLIPRequest("x"))
        }
        for before in frames[..<index] { _ = try session.receive(before) }
        let error = blipError { _ = try session.receive(Array(frame[..<length])) }
        expect(error != nil, "frame \(index) cut to \(length) bytes")
        if let error { codes[error.code, default: 0] += 1 }
        guard length < frame.count else { continue }
        var wrong = frame
        wrong[length] ^= 0x41
        let other = BLIPSession()
        for request in 1...40 {
          other.awaiting[UInt64(request)] = try OutgoingMessage(BLIPRequest("x"))
        }
        for before in frames[..<index] { _ = try other.receive(before) }
        do {
          // A wrong flag may be taken for another message.
          _ = try other.receive(wrong)
          expect(length < 2, "frame \(index) wrong at \(length)")
        } catch { codes[error.code, default: 0] += 1 }
      }
    }
    expect(codes[.badChecksum, default: 0] > 50)
    expect(codes[.emptyFrame], equals: frames.count)
    print("cut: \(codes)")
  }
}

extension BLIPSession {
  /// The next frame, if it is an ACK.
  fileprivate func nextAckForTests() -> [UInt8]? {
    guard !acks.isEmpty else { return nil }
    return try? nextFrame()
  }
}
