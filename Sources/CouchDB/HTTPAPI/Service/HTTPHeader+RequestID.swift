import Bytes
import HTTP
import Synchronization

// Headers of every answer, as CouchDB has them:
//
//   X-Couch-Request-ID: 8f8e7a4dfd        10 hexadecimal digits that look random; they are no secret. Or what the request has there
//   X-CouchDB-Body-Time: 41               milliseconds that the server waited for the body of the request

extension HTTPHeader {
  /// Steps through all 64-bit numbers from a random one. Random numbers of the system cost a call of it for each answer.
  private static let step = Atomic<UInt64>(UInt64.random(in: 0...UInt64.max))

  /// A number of this answer: SplitMix64 of the next step.
  private static func number() -> UInt64 {
    var z = step.wrappingAdd(0x9E37_79B9_7F4A_7C15, ordering: .relaxed).newValue
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// The name that a client has given its request, so that it finds the answer in its logs; nil if it has 37 characters or more, or others
  /// than letters and digits of ASCII, `-` and `_`.
  private static func name(of request: HTTPRequest?) -> String? {
    guard let name = request?.headers.first("x-couch-request-id"), name.utf8.count <= 36 else { return nil }
    let isPlain = name.utf8.allSatisfy { byte in
      byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-")
        || byte == UInt8(ascii: "_")
    }
    return isPlain && !name.isEmpty ? name : nil
  }

  /// The headers that tell an answer from others, to a request if there is one.
  package static func identity(of request: HTTPRequest? = nil, bodySeconds: Double = 0) -> [HTTPHeader] {
    [
      .init("X-Couch-Request-ID", name(of: request) ?? Hex.text(number() >> 24, digits: 10)),
      .init("X-CouchDB-Body-Time", String(Int((bodySeconds * 1_000).rounded()))),
    ]
  }
}
