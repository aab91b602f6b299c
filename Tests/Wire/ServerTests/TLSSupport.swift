import HTTP
import CSSL
import Foundation
import TestTools

@testable import Server

/// The identity of all servers with TLS that don't test identities.
enum TLSTest {
  static let identity = Result {
    let directory = TemporaryDirectory()
    return try withExtendedLifetime(directory) { try TLSIdentity.selfMade(in: directory.path) }
  }
  static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]

  /// Bytes that differ wherever some are lost, doubled or swapped.
  static func pattern(_ count: Int) -> [UInt8] {
    var state: UInt64 = 88_172_645_463_325_252
    let words = (0...(count / 8)).map { _ in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
    return words.withUnsafeBytes { Array($0.prefix(count)) }
  }

  static func options(_ version: Int32) -> TLSClient.Options {
    var options = TLSClient.Options()
    options.versions = version...version
    return options
  }
}

extension TestServer {
  /// A server with TLS.
  convenience init(
    tlsWith change: (inout HTTPServerConfiguration) throws -> Void = { _ in },
    _ handler: @escaping @Sendable (HTTPRequest, HTTPResponder) -> Void = echo
  ) throws {
    try self.init(
      with: {
        $0.tls = try TLSTest.identity.get()
        try change(&$0)
      }, handler)
  }

  func secureClient(_ options: TLSClient.Options = TLSClient.Options()) throws -> TLSClient {
    try TLSClient(port, options)
  }
}
