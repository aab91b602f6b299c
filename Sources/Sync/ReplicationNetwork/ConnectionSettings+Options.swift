import Network
import Replication

extension ConnectionSettings {
  /// Takes over what a replication says of its connections: certificates, the proxy, the interface, the time. Who the user is
  /// depends on the kind of the requests.
  package mutating func take(_ options: Replication.ConnectionOptions) {
    identity =
      switch options.authenticator {
      case .certificate(let pem, let keyPEM):
        .pem(certificate: pem, key: Secret(String(decoding: keyPEM, as: UTF8.self)))
      case .pkcs12(let data, let password): .pkcs12(data, password: password.map { Secret($0) })
      default: nil
      }
    trust =
      switch options.serverTrust {
      case .systemRoots: .system
      case .pinned(let certificate): .pinned(certificate)
      case .selfSigned: .onlySelfSigned
      }
    proxy =
      switch options.proxy {
      case .environment: .environment
      case .none: .none
      case .url(let url, let name, let password): .url(url, name: name, password: password.map { Secret($0) })
      }
    connectTimeout = options.timeout
    networkInterface = options.networkInterface
  }
}
