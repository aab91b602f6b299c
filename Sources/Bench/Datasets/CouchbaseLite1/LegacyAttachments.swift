import Bytes
import CCrypto
import CZlib
import FoundationEssentials

/// Writes the attachments of a database that is being made, each once, and the JSON that names them.
final class LegacyAttachments {
  private let settings: LegacyDatabase
  private let directory: String
  private var stored: [Int: (digest: [UInt8], length: Int, encodedLength: Int?)] = [:]

  init(_ settings: LegacyDatabase, in directory: String) {
    self.settings = settings
    self.directory = directory
  }

  /// The JSON with the attachments. In 1.0 they are in their own table.
  func body(_ json: [UInt8], _ attachments: [LegacyDocument.Attachment]) throws -> [UInt8] {
    guard settings.version != .v10, !attachments.isEmpty, json.first == UInt8(ascii: "{") else {
      return json
    }
    var members: [String] = []
    for attachment in attachments {
      let file = try store(attachment)
      let digest = "sha1-" + Data(file.digest).base64EncodedString()
      let encoded = file.encodedLength.map { "\"encoded_length\":\($0),\"encoding\":\"gzip\"," } ?? ""
      members.append(
        "\"\(attachment.name)\":{\"content_type\":\"image/png\",\"digest\":\"\(digest)\",\(encoded)\"length\":\(file.length),"
          + "\"revpos\":\(attachment.revpos),\"stub\":true}")
    }
    let rest = json.dropFirst()
    return Array("{\"_attachments\":{\(members.joined(separator: ","))}".utf8)
      + (rest.first == UInt8(ascii: "}") ? [] : [UInt8(ascii: ",")]) + rest
  }

  func store(_ attachment: LegacyDocument.Attachment) throws -> (
    digest: [UInt8], length: Int, encodedLength: Int?
  ) {
    if let found = stored[attachment.number] { return found }
    let bytes = settings.attachmentBytes(attachment.number)
    let encoded = attachment.isCompressed ? try Self.gzip(bytes) : nil
    var contents = encoded ?? bytes
    var digest = [UInt8](repeating: 0, count: 20)
    EVP_Digest(contents, contents.count, &digest, nil, EVP_sha1(), nil)
    let name = Hex.text(digest)
    if let key = settings.key { contents = Self.encrypted(contents, key, iv: Array(digest.prefix(16))) }
    // 1.0 wrote lower-case names, except on iOS.
    let isLower = settings.version == .v10 && settings.platform != .ios
    try Data(contents).write(
      to: URL(fileURLWithPath: "\(directory)/\(isLower ? name : name.uppercased()).blob"))
    let found = (digest, bytes.count, encoded?.count)
    // Only the next revisions of the same document need an attachment again.
    if stored.count > 10_000 { stored.removeAll() }
    stored[attachment.number] = found
    return found
  }

  private static func gzip(_ bytes: [UInt8]) throws -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw DatasetError(.corrupt, "zlib can't compress") }
    defer { deflateEnd(&stream) }
    var output = [UInt8](repeating: 0, count: bytes.count + 1_000)
    let size = output.count
    var input = bytes
    let count = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(size)
        _ = deflate(&stream, Z_FINISH)
        return size - Int(stream.avail_out)
      }
    }
    return Array(output.prefix(count))
  }

  private static func encrypted(_ bytes: [UInt8], _ key: [UInt8], iv: [UInt8]) -> [UInt8] {
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    EVP_EncryptInit_ex(context, EVP_aes_256_cbc(), nil, key, iv)
    var output = [UInt8](repeating: 0, count: bytes.count + 32)
    var first: Int32 = 0
    var last: Int32 = 0
    EVP_EncryptUpdate(context, &output, &first, bytes, Int32(bytes.count))
    output.withUnsafeMutableBufferPointer {
      _ = EVP_EncryptFinal_ex(context, $0.baseAddress! + Int(first), &last)
    }
    return iv + output.prefix(Int(first + last))
  }
}
