/// What clients may do, and how much of it.
package struct DatabaseServiceConfiguration: Sendable {
  /// Whether clients only read.
  package var isReadOnly = false
  /// The largest body of a request that is held in memory, in bytes: all but attachments of their own and multipart bodies.
  package var maximumRequestBytes = 256 << 20
  /// The largest document, in bytes of its JSON.
  package var maximumDocumentBytes = 8_000_000
  /// The largest attachment, in bytes.
  package var maximumAttachmentBytes = 4 << 30
  /// Whether `_temp_view` runs functions that a client sends.
  package var allowsTemporaryViews = false
  /// The software that answers, for `Server` and the root.
  package var version = "0.1.0"

  /// Makes a configuration with the defaults.
  package init() {}
}
