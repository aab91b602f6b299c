import Encryption

func bytes(of secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { [UInt8]($0) } }
