import CBLite2
import Encryption
import Logs
import Upgrade

// What the log may say of errors. None of these messages holds a key or content of documents.

extension DatabaseError: LoggedError {
  package var logText: String { description }
  package var isDamage: Bool { code == .damaged }
}

extension EncryptionError: LoggedError {
  package var logText: String { description }
  package var isDamage: Bool { code == .damaged }
}

extension UpgradeError: LoggedError {
  package var logText: String { "\(code)" }
}

extension CBLite2Error: LoggedError {
  package var logText: String { "\(code)" }
}
